import type { ExecutionContext } from 'ava';
import { askWho } from './ask.ts';
import { type HybridWorld, type Party, WHO_PORT } from './hybrid-world.ts';

/** One question of the matrix. */
export type Way = { readonly from: Party; readonly to: Party; readonly protocol: 'tcp' | 'udp' };

/** Questions at a time. */
const AT_ONCE = 8;

/** Returns everybody's ways to everybody else, by both protocols. */
export function allWays({ parties }: HybridWorld): readonly Way[] {
  return parties.flatMap((from) =>
    parties
      .filter((to) => to !== from)
      .flatMap((to) => (['tcp', 'udp'] as const).map((protocol) => ({ from, to, protocol }))),
  );
}

/** Asks; each must be answered by whom was asked, who finds the source that the documentation says. The VPC refuses nothing. */
export async function expectWays(t: ExecutionContext, world: HybridWorld, ways: readonly Way[]): Promise<void> {
  const answers: string[] = [];
  const waiting = [...ways.entries()];
  const run = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [at, { from, to, protocol }] = next;
      answers[at] = lineOf(from, to, protocol, await askWho(from.netns, protocol, to.ip, WHO_PORT));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  t.deepEqual(
    answers,
    ways.map(({ from, to, protocol }) => lineOf(from, to, protocol, `${to.name} ${world.sourceOf(from, to)}`)),
  );
  t.deepEqual(await world.vpc.droppedPackets(), []);
  t.deepEqual(await world.vpc.repeatedPackets(), []);
}

function lineOf(from: Party, to: Party, protocol: string, answer: string): string {
  return `${from.kind} ${from.name} to ${to.kind} ${to.name}, ${protocol}: ${answer}`;
}
