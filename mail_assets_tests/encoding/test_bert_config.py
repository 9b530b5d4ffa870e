"""Which checkpoints can be computed."""

import json

import pytest

from mail_assets.encoding.model_build import BertConfig, check_architecture
from mail_assets_tests.encoding.bert import TINY


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_type", "roberta"), ("hidden_act", "gelu_new"), ("position_embedding_type", "rope")],
)
def test_another_architecture_is_refused(key: str, value: str) -> None:
    config: BertConfig = json.loads(json.dumps({**TINY, key: value}))
    with pytest.raises(ValueError, match=f"{key}.*{value}"):
        check_architecture(config)
