"""Figures of the report that a person can point at and zoom: data for Plotly, which draws them in the browser."""

from nestbo.report.charts.chart import Chart
from nestbo.report.charts.table import CHARTS

__all__ = ["CHARTS", "Chart"]
