# SPDX-License-Identifier: GPL-2.0
"""On TC hooks, mode auto uses tcx. Before Linux 6.6, it uses a clsact filter."""

import pytest

from conftest import kernel
from lab import one_line

HAS_TCX = kernel() >= (6, 6)


@pytest.mark.parametrize("hook", ["ingress", "egress"])
def test_auto_takes_what_the_kernel_has(lab, hook):
    lab.attach("in0", "hook", hook)
    assert lab.attachments()[0]["mode"] == ("tcx" if HAS_TCX else "clsact")


@pytest.mark.skipif(HAS_TCX, reason="this kernel has tcx")
def test_tcx_is_refused_where_it_is_absent(lab):
    refusal = one_line(lab.attach("in0", "hook", "ingress", "mode", "tcx", status=1))
    assert "in0" in refusal and "tcx" in refusal and "auto" in refusal
