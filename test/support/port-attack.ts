import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from '../../sim/support/child.ts';
import { IS_LONG } from './suite-part.ts';
import { waitUntil } from './wait-until.ts';

/** A process that holds connections to a port, and begins each again when it ends. */
export type PortAttack = {
  readonly port: number;
  readonly kind: 'plain' | 'plain-unread' | 'tls';
  readonly connections: number;
  /** What is sent on each connection; absent: nothing. */
  readonly text?: string;
};

/** What a client got while a port was attacked. */
type Answers = {
  readonly answered: number;
  readonly asked: number;
  /** Most questions in a row without an answer. */
  readonly missedInRow: number;
  /** How many connections the attack had begun in the end. */
  readonly begun: number;
};

const QUESTIONS = 20;
const EVERY_MS = IS_LONG ? 500 : 100;

/** Attacks a port from another process, and asks it twenty questions meanwhile, each on a connection of its own. */
export async function askDuring(
  { port, kind, connections, text = '' }: PortAttack,
  ask: () => Promise<boolean>,
): Promise<Answers> {
  const program = join(import.meta.dirname, 'attack-port.ts');
  const attack = new Child([process.execPath, program, String(port), kind, String(connections), text]);
  try {
    const begun = (): number => Number(attack.stdout.trim().split('\n').at(-1));
    await waitUntil(() => begun() >= connections || undefined, {
      what: 'all connections are begun',
      timeoutMs: 60_000,
      everyMs: 50,
      explain: () => attack.stderr,
    });
    const results: boolean[] = [];
    for (let question = 0; question < QUESTIONS; question++) {
      results.push(await ask().catch(() => false));
      await sleep(EVERY_MS);
    }
    if (!attack.isRunning) throw new Error(`the attack ended: ${attack.stderr}`);
    let [missed, missedInRow] = [0, 0];
    for (const isAnswered of results) {
      missed = isAnswered ? 0 : missed + 1;
      missedInRow = Math.max(missedInRow, missed);
    }
    return { answered: results.filter(Boolean).length, asked: QUESTIONS, missedInRow, begun: begun() };
  } finally {
    await attack.stop('SIGKILL');
  }
}
