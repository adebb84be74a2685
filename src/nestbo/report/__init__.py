"""Studies as HTML pages: to send, or to watch while they run. Nothing in a page comes from elsewhere."""

from nestbo.report.folder import Folder, overview
from nestbo.report.page import page
from nestbo.report.serving import Watch

__all__ = ["Folder", "Watch", "overview", "page"]
