import type { Machine } from '../machine.ts';
import type { WholeAgent } from '../whole-agent.ts';

/** A world whose nodes have real agents. */
export const WHOLE = { agentFlags: [] } as const;

/** Returns the real agent of a node. */
export function agentOf({ whole, name }: Machine): WholeAgent {
  if (whole === undefined) throw new Error(`${name} has no real agent`);
  return whole;
}
