import type { ExecutionContext } from 'ava';
import type { Crash } from '../process-lives.ts';

/** What a life left: what was wrong, and whether its process died. */
export type Left = { readonly faults: readonly string[]; readonly isCrashDone: boolean };

/** The calls at which a process dies, and whether before or after them. */
export const DEATHS = (['change', 'read'] as const).flatMap((of) =>
  (['before', 'after'] as const).map((moment) => ({ of, moment })),
);

/** Lives once for each call at which a process may die, until a life has no such call any more. */
export async function dieAtEachCall(
  t: ExecutionContext,
  { of, moment }: (typeof DEATHS)[number],
  live: (crash: Crash) => Promise<Left>,
  leastCalls = 0,
): Promise<void> {
  let at = 0;
  for (;;) {
    at += 1;
    const { faults, isCrashDone } = await live({ of, at, moment });
    t.deepEqual(faults, [], `dead ${moment} call ${at} to ${of}`);
    if (!isCrashDone) break;
  }
  t.true(at > leastCalls, `only ${at} calls`);
}
