"""A study as one HTML page: to send, or to watch while it runs. Nothing in the page comes from elsewhere."""

from nestbo.report.page import page
from nestbo.report.serving import Watch

__all__ = ["Watch", "page"]
