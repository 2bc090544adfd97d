"""The two halves of the templates. Both hold forms that the rules of `vimbank.domain.statements` do not know.

The rules may be tried on ``TUNING`` alone: two lists, the second of which was written before any rule and used for
reporting until the rules were widened. ``REPORT`` was written before that and is never looked at when they change.
"""

from typing import Final

from vimbank.eval.fact_update_templates.report_en import REPORT_EN
from vimbank.eval.fact_update_templates.report_zh import REPORT_ZH
from vimbank.eval.fact_update_templates.tuning_first import FIRST
from vimbank.eval.fact_update_templates.tuning_second import SECOND

__all__ = ["REPORT", "TUNING"]

TUNING: Final = FIRST + SECOND
REPORT: Final = REPORT_EN + REPORT_ZH
