"""Outcomes of patches: sentences of people, mails of programs, and their patches."""

import pytest

from mail_assets.mail.body.segments import segment_body
from mail_assets.mail.patches.outcomes import OutcomeStatement, find_targets, read_outcomes
from mail_assets.mail.patches.series import Posting
from mail_assets_tests.mail.patches.series_patches import make

#: Outcome -> sentences that state it.
SAID = {
    "applied": """
I've changed how we do the check and pushed, thanks.
I've moved the note so that it's seen by all tests and pushed, thanks for the review.
I renamed the crane that had two names, and pushed.
So I merged the original patch.
Merged your original patch.
Pushed, and tested on two cranes, thanks.
Added to misc-next, thanks.
Right, thanks, patch now added to devel.
I've added the patches to for-next, thanks.
With the typos fixed, added to the crane-fixes with some updates, thanks.
Applied, thanks.
Applied!
Thanks, applied to for-next.
Pushed v1, no need for v2.
These four patches have been merged.
v1 is already applied, please send a delta.
v1 has already been applied.
No need for a v2, I have applied v1.
No need to resend, applied.
Modified and applied. Thanks!
Pushed, thanks.
Pushed.
I've committed this.
I have committed this patch with minor changes.
Committed, thanks for the patch.
Committed as 1234567abc.
Pushed as 3f2a9d1b0c4e5f60718293a4b5c6d7e8f9012345.
Thanks, applied: 3f2a9d1b0c4e5f60718293a4b5c6d7e8f9012345
Pushed as 3f2a9d1b0c to master.
Pushed 0001 and 0002.
I've pushed 0001 now.
I pushed v7-0001, will look at the others tomorrow.
Applied 1-5.
Applied 1-5, thanks!
Applied patches 1, 3 and 4 to devel.
Applied patches 1 through 3.
Series applied to net-next.
Series applied.
Whole series applied, thanks!
Both applied.
All applied, thanks.
All three patches applied.
Queued for 6.2.
Queued up for v5.19, thanks.
Now queued up, thanks.
This series has been applied to the staging tree.
This has been pushed to master.
Applied to the vfs.misc branch of the crane/crane.git tree.
That's queued in my "-next" branch.
It's pulled into the main crane branch as well.
I applied the patch to the posix24 branch.
Applied for crane-7.0
I've pushed them to my website.
This is now merged.
Merged to master.
Merged, thanks!
LGTM, merged.
Looks good to me, applied.
Thank you, I've applied the series.
I've pushed the first two patches.
Patch applied.
Patches applied.
I went ahead and pushed this.
I've gone ahead and committed this.
Pushed with some minor edits.
Committed and backpatched to 12.
Pushed to all supported branches.
I've now pushed this to HEAD.
picked up, thanks
Picked up for 5.16.
Thanks! I've queued this up for the next merge window.
Applied to the next release branch, with patch 3 fixed up.
Queued for processing into 6.4, thanks.
I've queued both for 5.19.
And pushed.
I merged this as a separate commit.
Whole patchset merged.
Thanks, entire patch set pushed!
Done, pushed to main.
Installed, thanks.
Landed in main as 0a1b2c3d4e.
Pushed, after fixing a typo in a comment.
OK, I have pushed this one.
Great, thanks - applied.
Thanks for the review, pushed.
Pushed this now. Thanks for working on it!
Applied to pending, thanks!
Committed.
I committed the patch, thanks.
Thanks Andres, pushed.
Hi Bob, applied to my fixes branch.
v3 applied, thanks.
I've merged this into my tree.
Applied with a small fix.
Applied (with a tweak to the subject).
Applied for 5.19-rc.
applied to nvme-5.16.
Patch 1 applied.
Patch 2/3 applied to fixes.
Done that way and pushed.
Fixed and pushed.
Committed that way.
Ann, patch applied!
Title fixed, and patch applied.
Typo fixed and pushed.
I applied all of v2, and another one.
In this case, I applied both of your patches.
So, I applied both 3/5 and 4/5.
Patches v2 1/4 and 2/4 applied.
P.S.: Patch applied.
Checked in, thanks.
Marked as committed.
I have marked this as committed in the commitfest.
patchset applied
Tested on x86_64-linux, pushed to trunk.
Bootstrapped and regtested on x86_64, committed to trunk.
Thanks for testing, applied.
Committed r12345.
Committed revision 12345.
Committed as r12345, thanks.
Thanks, r12345.
This landed in r12345.
Taken, thanks.
Added to my queue, thanks.
Folded in, thanks.
Patch applied, but see my comments below.
Already merged from GitHub.
I have applied a slightly different version of the patch:
Applied & fixed, thanks!
Merged a few days ago.
Merged into crane/dev-staging with plans to move it to crane/dev once the window closes.
So, merged -- please, test it with another compiler.
Merged into crane/dev, thanks for working on this!
Now that we have Bo's review, I've gone ahead and merged this into crane/dev, thanks!
I let everyone know that I've just merged this into crane/dev.
I had to fix a few lines, but otherwise this looked good to me, merged into crane/dev.
Good idea, but I've merged it with a small change.
Thanks, Jan. Applied with Bo's ack
Applied series to `crane-next` -- thanks everyone!
I've checked this in.
This is now in CVS.
I applied it both on trunk and branches/crane26.
Patch applied.
Pushed to trunk as r14-99-gabcdef0123.
Tomorrow came quickly :) Merged, thanks Ann.
I fixed the comment and then pushed this.
I changed also these 2 tests and merged whole patch.
Patchset pushed, good work, thanks.
Patch applied, thanks for your work.
Thanks, applied for inclusion in v2.0.20.
Thanks Ann -- your patch has been queued for crane-7.2.8:
Much better, merged into crane/next.
... and merged.
... and now it's merged :)
Anyway, it's merged into crane/next now.
With no comments since, I merged it into crane/next.
Typo fixed, and merged into crane/dev, thanks.
All nine patches have been merged.
This series of four patches has been merged.
This series has indeed been applied to the harbour tree.
I've fixed a typo and pushed, thanks.
Rebased and merged with updated commit message.
Obviously correct, thus pushed.
Thanks for the review, this patch merged!
This is safe to merge => merged.
Anyway merged.
Therefore I merged with this change:
Thanks, applied but see note below.
Merged into crane/next to be sent upstream.
Queued for the next window, you'll see it once that opens.
Pushed without this comment.
I've merged the patch without the comment.
Fix merged.
Thanks, both fixes pushed!
Pushed to master: https://example.org/tree/master
""",
    "rejected": """
I refuse to apply this.
I decline to merge this series.
NAK
NACK.
Nacked-by: John Doe <j@example.org>
NAK, this breaks ABI.
Nak. This is wrong.
Sorry, NAK.
So NAK from me.
NAKed-by: John Doe <j@example.org>
Rejected.
I'm marking this as Returned with Feedback.
Closing this as Rejected.
I'm closing this patch as rejected.
Big NAK on this one.
I'm not going to apply this.
I won't apply this patch.
I have decided not to take these patches.
I don't apply this patch.
I am not applying this series, because it is too late.
""",
    "withdrawn": """
Plz ignore this patch
So sorry, this patch has a fault, please ignore.
This series breaks the pier, ignore it.
Michael, please ignore this patch.
Please ignore this patch.
Please disregard this series.
I withdraw this patch.
I'm withdrawing this.
Please drop this patch.
Let's drop this patch.
Please ignore.
Withdrawn.
Self-NAK.
Please don't apply this.
Please do not merge this series.
Sorry, please ignore this one.
Oops, please ignore this.
Cancel this patch.
Please consider this patch dropped.
Consider it withdrawn.
It looks like Ann was able to fix the problem, so ignore these.
Bob has a better fix, so please drop this patch.
""",
    "superseded": """
I have resent the patches now, ignore this.
Please ignore, v3 follows.
Please ignore this, I'll send a v2.
v3 coming. Ignore this please.
Superseded by v4.
This is superseded by v3: https://example.org/
This patch has been superseded by [PATCH v2].
Please use v3 instead.
Please ignore this version, I sent v2 already.
Ignore this patch, I have resent it.
""",
    "resend-requested": """
Please resend.
Can you please resend this against net-next?
Could you respin?
Please rebase and resend.
Could you send a v2?
Please repost with the right Cc list.
Can you please send a new version?
Needs a rebase.
""",
}
#: Sentences that state no outcome: conditions, plans, questions, trials, other subjects.
UNSAID = """
I've applied this fix to Debian as 2.42-2.
We applied patches to three cranes and tested.
I've applied the patches from Ann to my tree.
I checked in the log and it is not there.
It is now in the tree that we walk.
I merged all but these two patches.
I merged all patches but one.
I've seen that others changed this and pushed, thanks.
I wanted to know what happens when the button is pressed and pushed.
I fixed the notes in my branch and pushed.
The tests warn about this patch, but it is a known fault, please ignore it.
The noise is from another test, please ignore.
I have applied your patch and tested on the crane-next tree on three machines.
I applied the series and then tested it with two cranes, no issue was seen.
I've applied the patch to my tree and I'm looking for a crane to test the patch.
I pushed your patch through mailing list, because you posted unsubscribed.
Please ignore my email I just replied to you, I forgot to click reply all.
Do you need to I send a V5 patch?
Please never send a new version of a patch with the same number.
Applied to my trash folder.
Merged in my dreams.
No need to resend, I will apply it.
It's added to the tree when the node is split.
It was added to main() in the last version.
This was added to the next version.
Added to for-next as topic branch for now.
Picked up by the press and widely reported.
v1 is not applied yet.
Is v1 already applied?
This was already applied in v1.
If nobody objects I will apply this.
If nobody objects, I'll push this tomorrow.
I will apply this.
Will apply, thanks.
I'll queue this up.
Applied 1-2 for now.
Should this be applied to stable?
Has this been applied?
Was this ever merged?
Can you apply this?
Please apply.
I applied the patch and it fails to build.
I've applied this on top of 5.14 and get a crash.
I applied this locally and tested it.
This was not applied.
This can be applied once 5.15 is out.
This should be merged through the xfs tree.
To be applied after the merge window.
I'd like to see this merged.
I had hoped this would be pushed before the freeze.
Not applied, please rebase.
I can't apply this.
Let me know when you have pushed it.
I've pushed a new branch to github.
I pushed my changes to a branch for review.
The setting is applied to all devices.
The values are committed to disk on close.
The commit "Applied, thanks" is a joke.
Unless there are objections, pushed tomorrow.
I don't think this should be rejected.
This is not a NAK.
I would NAK that.
The packet is rejected.
The device sends a NAK.
NAK packets are dropped.
Ignore this comment if you like.
Feel free to ignore.
Drop this hunk.
Please drop this line.
Please drop this check.
I'll drop this.
I'll resend.
Should I resend?
No need to resend.
If you resend, please add my tag.
Let me know if you want me to resend.
Will respin.
I'd apply this if it were smaller.
Pushed back by a week.
Once it is merged we can continue.
I have applied your comments.
Applied your suggestions in v2.
Committed to fixing this next week.
I am committed to this.
The patch was applied against the wrong tree.
I have not pushed this yet.
It looks like the patch was applied twice?
Except for patch 3, applied.
I committed a similar fix last year.
Merged the two functions.
I merged the hunks into one.
I've merged patches 2 and 3 into one.
Applied all your comments.
I think it got applied already?
I have pushed the rest.
So I've applied a bunch of these.
Pushed, with the exception of 0003.
This was committed in 2019 as part of another patch.
This has been queued for a while.
Will merge to 'next'.
Thanks, both. Will queue.
I won't apply this as is.
I won't apply this yet.
I'm not going to apply this until it is tested.
Point taken.
Added to the changelog:
Thanks for the detailed mail (which all landed in my commit message).
First, applied the patch and it failed.
However, applied to production it fails.
It landed in 5.3.
Cancel this job.
I don't apply patches without tests.
Taken together, these patches are large.
Added to the list of known problems.
Merged in v4.6 and I am on 4.4 :(
Landed in 5.19, but my kernel is older.
I pushed this change as a new patch set because the other patches are merged.
I've pushed this as a separate pull request.
I pushed it for review.
I've already pushed 3.8-rc2 but I will wait.
I applied the patch on linux-next tag next-20240318, but the part has changed.
I've applied your patch on 5.14.
I have applied your patch (with minor corrections) and here is the output.
Applied the patch to lib/crane.c and rebuilt the tools.
I applied the patch, here's the log.
I applied this patch and reproduced the fault.
I applied this patch and it addresses my issue.
NAK for any code this touches that I'm responsible for.
NACK for the harbor part, and you did not test it.
NAK on the second hunk.
NAK to the pier driver changes.
I made some changes and applied the patches locally.
I made some modifications and applied your comments.
Patch applied, and now it works.
I fixed the build and applied this patch, and it still fails.
The bot is wrong here, so ignore this.
It is only a warning, so ignore it.
The pages are stale here, so drop them.
Those flags are not used by the kernel, so ignore them.
The queue is full, so discard the set.
The user gave no version, so ignore the version.
It has been merged in v5.6-rc1.
I have rewritten it and pushed it to my account.
I modified your patch and merged into my own fork.
Test it first, then merged into master.
I have a fix that was reviewed and merged.
The page is split and merged.
This is right, so please merged.
I made a pass at this and force-pushed it to my branch.
If it is correct, merged into crane/next.
Patch 2/3: pushed.
I applied into the original patch.
It will get merged into crane/next after the window.
Pushed without the last patch.
Applied without problems.
I've pushed all 16 into https://example.org/ann/crane/tree/trial
Again, pushed to:
So I pushed the latest to my main branch.
This is queued for the day you'll see it.
Applied for a job at Acme.
Applied for a grant.
I applied for membership.
I applied to Acme last week.
Applied to the wrong tree, sorry.
Picked up a cold.
Picked up my kids.
Picked up a few Reviewed-by tags.
Queued at the post office.
Queued for later.
Landed in Berlin yesterday.
Landed on the wrong foot.
I landed it on my desk.
Applied to a clean tree, this fails.
Applied to 5.10 this breaks the build.
This was merged by mistake.
This was merged by accident, sorry.
Applied accidentally.
Pushed and then backed out.
Applied, then reverted.
Applied, then I dropped it.
It is applied to the input.
This is applied to each byte.
These are pushed onto the stack.
It is pushed to the stack.
It was committed to memory.
I committed it to memory.
Those are queued in the driver.
Both are merged by the linker.
Applied to the letter.
Merged into one function.
Merged into patch 3.
Pushed v2 to the list.
The pages are queued for writeback.
Merged into crane/next to be tested.
"""
SHA = "3f2a9d1b0c4e5f60718293a4b5c6d7e8f9012345"


def read(text: str) -> list[OutcomeStatement]:
    """Return the outcomes of an answer between a quotation and a signature."""
    body = f"On Tue, Ann wrote:\n> Applied, thanks.\n> a diff\n\n{text}\n\nRegards,\nBob\n"
    return read_outcomes(body, segment_body(body, "Bob", "bob@example.org"))


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [(name, line) for name, lines in SAID.items() for line in lines.strip().splitlines()],
)
def test_sentence_states_an_outcome(outcome: str, sentence: str) -> None:
    assert [one.outcome for one in read(sentence)] == [outcome]


@pytest.mark.parametrize(("sentence", "firm"), [
    ("Pushed.", True),
    ("Committed as r12345.", True),
    ("Applied to for-next, thanks.", True),
    # an author about a suggestion
    ("Applied.", False),
    ("Applied as 3f2a9d1b0c.", True),
    ("Fixed and pushed.", False),
    ("Fixed and pushed as 3f2a9d1b0c.", True),
    ("Merged.", False),
    ("Merged into crane/next, thanks.", True),
    ("I just merged this into crane/stable-5.12.", True),
    ("Thanks for the review. Merged into main.", True),
    ("Thanks a lot, whole patchset merged!", True),
    ("Series merged.", True),
    ("This series has been merged.", True),
    ("These nine patches have been merged.", True),
    ("Much better, merged into crane/next.", True),
    ("I've simplified the code and pushed.", False),
])  # fmt: skip
def test_words_for_suggestions_are_not_firm(sentence: str, firm: bool) -> None:
    assert [one.firm for one in read(sentence)] == [firm]


@pytest.mark.parametrize(("subject", "count"), [
    ("Re: [PATCH v2] crane: lift", 1),
    ("Re: [PATCH v3] crane: lift", 0),
    ("Re: [PATCH] crane: lift", 0),
    ("Cranes", 1),
])  # fmt: skip
def test_statement_about_another_version_is_left_out(subject: str, count: int) -> None:
    body = "I pushed v2, thanks.\n"
    assert len(read_outcomes(body, segment_body(body), subject)) == count


@pytest.mark.parametrize(("subject", "count"), [
    ("Re: [PATCH 2/3] crane: Test the lift", 0),
    ("Re: [PATCH v2] crane: Fix lift of beams", 1),
    ("Re: [PATCH 0/3] Cranes", 1),
    ("Cranes", 1),
])  # fmt: skip
def test_commit_with_another_title_is_left_out(subject: str, count: int) -> None:
    commit = '3f2a9d1b0c7e ("crane: Fix\nthe lift of beams")'
    body = f"It has been merged into the crane tree as {commit}.\n"
    assert len(read_outcomes(body, segment_body(body), subject)) == count


@pytest.mark.parametrize("sentence", UNSAID.strip().splitlines())
def test_sentence_states_nothing(sentence: str) -> None:
    assert read(sentence) == []


@pytest.mark.parametrize("middle", ["", "> a diff\n> more\n"])
@pytest.mark.parametrize(
    "head",
    [
        (
            "-----Original Message-----\nFrom: Cem Gate <cem@x.example>\n"
            "Sent: Monday, March 4, 2024\nTo: Ann <ann@x.example>\nSubject: Re: [PATCH] crane\n"
        ),
        (
            "From: Cem Gate<mailto:cem@x.example>\nDate: 2024-03-04 13:16\n"
            "To: Ann<mailto:ann@x.example>\nSubject: Re: [PATCH] crane\n"
        ),
        (
            "-----邮件原件-----\n发件人: Cem Gate [mailto:cem@x.example]\n"
            "发送时间: 2024年3月4日 15:15\n"
            "收件人: Ann <ann@x.example>\n主题: Re: [PATCH] crane\n"
        ),
    ],
)
def test_unmarked_quotation_of_outlook_states_no_outcome(head: str, middle: str) -> None:
    body = f"Thanks for merging.\n\n{head}\nHi!\n{middle}\nPushed.\n"
    assert read_outcomes(body, segment_body(body, "Ann", "ann@x.example")) == []
    body = f"Pushed, thanks.\n\n{head}\nHi!\n{middle}\nPlease apply.\n"
    assert len(read_outcomes(body, segment_body(body, "Cem", "cem@x.example"))) == 1


@pytest.mark.parametrize(("sentence", "parts", "whole"), [
    ("Applied 1-3 and 5, thanks.", (1, 2, 3, 5), False),
    ("So, I applied both 3/5 and 4/5.", (3, 4), False),
    ("Patches v2 1/4 and 2/4 applied.", (1, 2), False),
    ("Pushed 0001 and 0002.", (1, 2), False),
    ("I pushed v7-0001 now.", (1,), False),
    ("I've pushed the first two patches.", (1, 2), False),
    ("Patch 2/3 applied.", (2,), False),
    ("Series applied, thanks.", (), True),
    ("I've pushed all 16 into main.", (), True),
    ("All 5 applied.", (), True),
    ("All your 5 patches applied.", (), True),
    ("Applied all three crane patches, thanks.", (), True),
    ("I've applied all of the patches below.", (), True),
    ("I have applied the first 3 patches.", (1, 2, 3), False),
    ("Applied to v6.2-rc1.", (), False),
    ("These 5 patches have been merged.", (), True),
    ("Patches 1-3, 5, and 7 from this series have been merged.", (1, 2, 3, 5, 7), False),
    ("Marked it for stable, and merged it into crane/stable-6.16.", (), False),
    ("I bumped it to 20 and pushed.", (), False),
    ("I fixed some commits and merged the patchset.", (), True),
    ("Applied.", (), False),
])  # fmt: skip
def test_applied_parts_are_read(sentence: str, parts: tuple[int, ...], whole: bool) -> None:
    [one] = read(sentence)
    assert (one.parts, one.whole) == (parts, whole)


@pytest.mark.parametrize(("text", "shas"), [
    (f"Pushed as {SHA[:10]} to master.", (SHA[:10],)),
    (f"Applied, thanks.\nhttps://git.example.org/x/c/{SHA}\n", (SHA,)),
    (f"Committed: https://git.example.org/?p=x.git;a=commit;h={SHA}\n", (SHA,)),
    ("Applied to release 20240311.", ()),
    # revisions of Subversion
    ("Committed, r1931, with small edits.", ("r1931",)),
    ("Committed revision 1850.", ("r1850",)),
    ("Committed r1931 to trunk and r1932 to the branch.", ("r1931", "r1932")),
    ("Committed, this mends the loss since r1900.", ()),
    ("Applied to trunk at https://svn.example.org/r1931/crane", ()),
    ("The series has been committed as r1972-1977.", ()),
])  # fmt: skip
def test_commits_are_read(text: str, shas: tuple[str, ...]) -> None:
    assert [one.shas for one in read(text)] == [shas]


THANKS = f"""Applied, thanks!

[1/3] crane: Lift
      commit: {SHA}
[2/3] crane: A title that a mail server
      has wrapped
      https://git.example.org/x/c/{SHA[::-1]}
[3/3] crane: Sink
      (no commit info)

Best regards,
"""
BOT = f"""Hello:

This series was applied to example/next.git (main)
by Bob Example <bob@example.org>:

On Mon, 4 Mar 2024 you wrote:
> All of it.

Here is the summary with links:
  - [v2,1/2] crane: Lift
    https://git.example.org/example/next/c/{SHA[:12]}
  - [v2,2/2] crane: Sink
    (no matching commit)

You are awesome, thank you!
"""
PULLED = f"""The pull request you sent on Sat, 3 Jul 2021 08:08:28 -0700:

> git://git.example.org/pub/crane tags/crane-for-5.14

has been merged into example/linux.git:
https://git.example.org/example/c/{SHA}

Thank you!
"""
TIP = f"""The following commit has been merged into the crane/core branch of tip:

Commit-ID:     {SHA}
Gitweb:        https://git.example.org/tip/{SHA}
"""


def test_thank_you_names_patches_with_and_without_commits() -> None:
    found = [(one.parts, one.title, one.shas) for one in read(THANKS)]
    assert found == [
        ((1,), "crane: Lift", (SHA,)),
        ((2,), "crane: A title that a mail server has wrapped", (SHA[::-1],)),
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Applied, thanks!\n\nI could take all but:\n\n[2/3] crane: Sink\n", []),
        ("Series applied except for:\n\n[2/3] crane: Sink\n", []),
        ("Applied, thanks!\n\n[1/3] crane: Lift\n\nThese did not apply:\n[2/3] crane: Sink\n", [1]),
        ("Applied, thanks!\n\n[1/1] crane: Sink\n      (no commit info)\n", [1]),  # of no commit
        ("Applied, thanks!\n\nSkipped:\n[1/3] crane: Lift\nApplied:\n[2/3] crane: Sink\n", [2]),
    ],
)
def test_entries_that_are_taken_out_are_not_applied(text: str, parts: list[int]) -> None:
    assert [one.parts for one in read(text)] == [(part,) for part in parts]


@pytest.mark.parametrize(("text", "outcome", "titles", "shas"), [
    (BOT, "applied", ["crane: Lift"], [(SHA[:12],)]),
    (PULLED, "pulled", [""], [(SHA,)]),
    (TIP, "applied", [""], [(SHA,)]),
])  # fmt: skip
def test_programs_are_read(
    text: str, outcome: str, titles: list[str], shas: list[tuple[str, ...]]
) -> None:
    found = read_outcomes(text, segment_body(text))
    assert {one.outcome for one in found} == {outcome}
    assert [one.title for one in found] == titles
    assert [one.shas for one in found] == shas


def test_statement_is_a_span_of_the_body() -> None:
    body = "Hello,\n\nlooks fine. I have now pushed this, thanks.\n"
    [one] = read_outcomes(body, segment_body(body))
    assert body[one.start : one.end] == "I have now pushed this, thanks."


POSTING = Posting(
    (
        make("c", "[PATCH 0/3] Cranes"),
        make("p1", "[PATCH 1/3] crane: Lift"),
        make("p2", "[PATCH 2/3] crane: Sink so deep"),
        make("p3", "[PATCH 3/3] crane: Swim"),
    )
)


@pytest.mark.parametrize(("about", "answered", "targets"), [
    ({}, "c", "p1 p2 p3"),
    ({}, "p2", "p2"),
    ({"whole": True}, "p2", "p1 p2 p3"),
    ({"parts": (1, 3)}, "c", "p1 p3"),
    ({"parts": (9,)}, "c", ""),
    ({"title": "Crane: lift", "parts": (2,)}, "c", "p1"),
    ({"title": "crane: Sink so very deep", "parts": (2,)}, "c", "p2"),
    ({"title": "crane: Sink so very deep", "parts": (3,)}, "c", ""),
    ({"title": "another patch"}, "c", ""),
])  # fmt: skip
def test_statement_finds_its_patches(about: dict[str, object], answered: str, targets: str) -> None:
    statement = OutcomeStatement("applied", 0, 1, **about)  # type: ignore[arg-type]
    found = find_targets(statement, POSTING, answered)
    assert " ".join(one.key[0] for one in found) == targets
