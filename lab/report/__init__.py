"""The report of an experiment: stored documents in; one page, its Markdown and pictures out."""

from lab.report.document import report_document
from lab.report.write import write_report

__all__ = ["report_document", "write_report"]
