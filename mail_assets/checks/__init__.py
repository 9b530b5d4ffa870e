"""The asset checks: what must hold before the next asset is made, and what deserves a look.

Blocking checks stop the run where everything downstream would be wrong; the others warn.
Checks are not partitioned (a preview in Dagster 1.13). https://docs.dagster.io/guides/test/asset-checks
"""

from mail_assets.checks.index import reconciled, search_quality_holds
from mail_assets.checks.months import (
    accounted_for,
    few_quarantined,
    few_undated,
    few_unthreaded,
    forgotten_stay_forgotten,
    keys_agree,
    one_fingerprint,
    spans_point_into_bodies,
    tokens_in_range,
)

CHECKS = [
    accounted_for,
    few_quarantined,
    few_undated,
    few_unthreaded,
    spans_point_into_bodies,
    tokens_in_range,
    one_fingerprint,
    keys_agree,
    reconciled,
    forgotten_stay_forgotten,
    search_quality_holds,
]
