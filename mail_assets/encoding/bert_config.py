"""The fields of a BERT checkpoint's config.json, and whether this package can compute it."""

from typing import NotRequired, TypedDict


class BertConfig(TypedDict):
    """The fields of a checkpoint's config.json that shape the graph."""

    model_type: str
    hidden_act: str
    position_embedding_type: NotRequired[str]
    hidden_size: int
    num_attention_heads: int
    num_hidden_layers: int
    max_position_embeddings: int
    layer_norm_eps: float


def check_architecture(config: BertConfig) -> None:
    """Raise ValueError for another architecture than BERT with GELU and absolute positions."""
    found = (
        config["model_type"],
        config["hidden_act"],
        config.get("position_embedding_type", "absolute"),
    )
    if found != ("bert", "gelu", "absolute"):
        raise ValueError(
            "config.json: need model_type 'bert', hidden_act 'gelu' and position_embedding_type "
            f"'absolute', found {found}. Choose a model of that architecture"
        )
