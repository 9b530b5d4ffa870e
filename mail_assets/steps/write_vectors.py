"""Make one month's part of the vector index equal to its chunks (see fill_index.py)."""

from collections.abc import Iterator, Sequence
from functools import partial

from mail_assets.indexes.month import maintain_if_due
from mail_assets.indexes.vectors import MailVectors, vector_metadata
from mail_assets.month import ListMonth
from mail_assets.steps.fill_index import fill_month
from mail_assets.steps.outcome import Outcome, StepError
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.tables.chunks import read_facts
from mail_assets.tables.indexes import Manifest
from mail_assets.tables.partitions import Partition, State, locked, read_state
from mail_assets.vectors.index import Vector
from mail_assets.workspace import Workspace


def write_vectors(
    workspace: Workspace, month: ListMonth, mail_vectors: MailVectors, *, rebuild: bool = False
) -> Outcome:
    """Put what is new, delete what is stale; nothing when nothing has changed.

    With `rebuild` every entry is compared with what is made now, and put again where it differs.

    Raises:
        StepError: embeddings was never materialized for this month with this encoder, lacks a
            text of its chunks, or has vectors of another dimension. Nothing was written then.
    """
    connection, encoder = workspace.connection, mail_vectors.fingerprint
    with locked(connection, Partition(mail_vectors.table, month)):
        embeddings = read_state(connection, Partition("embeddings", month))
        messages = read_state(connection, Partition("messages", month))
        if messages is None or embeddings is None or not embeddings.inputs.endswith(encoder):
            raise StepError(
                f"{month}: no embeddings of encoder {encoder} yet; materialize embeddings first"
            )
        inputs = vector_inputs(messages, embeddings, mail_vectors.manifest)
        make = partial(make_vectors, workspace, month, mail_vectors)
        outcome = fill_month(workspace, month, mail_vectors, inputs, make, rebuild=rebuild)
    if written := outcome.counts["written"]:
        workspace.log(f"{month}: {written} vectors written")
        maintain_if_due(workspace, mail_vectors.index)
    return outcome


def vector_inputs(messages: State, embeddings: State, manifest: Manifest) -> str:
    """Return what the vectors of a month are made from, and for which index.

    Messages count too: a vector carries sender, date and subject, which its text does not.
    """
    return f"{messages.digest} {embeddings.digest} {manifest.index_name}"


def make_vectors(
    workspace: Workspace, month: ListMonth, mail_vectors: MailVectors, keys: Sequence[str]
) -> Iterator[Vector]:
    """Return the vectors of some chunks, or raise before anything is written."""
    if not keys:
        return iter(())
    encoder, dimension = mail_vectors.fingerprint, mail_vectors.index.spec.dimension
    chosen = {*keys}
    facts = [fact for fact in read_facts(workspace.connection, month) if fact.key in chosen]
    wanted, key = {fact.text_hash for fact in facts}, file_key(month, encoder)
    values = read_embeddings(workspace.store, key, wanted)
    if missing := wanted - values.keys():
        raise StepError(
            f"{month}: the embeddings file lacks {len(missing)} of {len(wanted)} texts; "
            "materialize embeddings for this month again"
        )
    if other := {vector.size for vector in values.values()} - {dimension}:
        raise StepError(
            f"{month}: {workspace.store.url(key)} has vectors of {other.pop()} numbers, which the "
            f"encoder's server gave once, and the index takes {dimension}; delete the file and "
            "materialize embeddings for this month again"
        )
    return (
        Vector(fact.key, values[fact.text_hash], vector_metadata(fact, month, encoder))
        for fact in facts
    )
