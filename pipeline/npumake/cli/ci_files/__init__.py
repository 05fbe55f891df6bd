"""The files that `npumake ci` writes for others: JUnit, SARIF and a summary in Markdown.

Each module turns results into the text of one format and reads nothing itself. Names in them come
from untrusted projects: every format escapes them.
"""
