import { join } from 'node:path';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import type { Child } from '../../../sim/support/child.ts';
import type { Trial } from './trial.ts';

/**
 * Starts a program that undoes one thing `rate` times a second, without a process for each time: a busy machine slows it
 * down no more than the agent. `what` is for `undo-loop.ts`. The caller stops it.
 */
export function startOpponent({ node }: Trial, what: object, rate: number): Child {
  const program = join(import.meta.dirname, 'undo-loop.ts');
  return node.netns.start([process.execPath, program, JSON.stringify(what), String(rate)]);
}

/** Number of the table of an ENI. */
export async function tableOfEni(trial: Trial, eniId: string): Promise<number> {
  const { ifname } = await trial.vpc.eni(eniId);
  const [route] = await trial.node.netns.ipJson('-N', 'route', 'show', 'table', 'all', 'default', 'dev', ifname);
  return Number(route?.['table']);
}

/** Deletes the rule by which the node's own packets with the first ENI's address find its table. */
export function deletionOfEniRule(trial: Trial, table: number): object {
  const spec = { family: AF_INET, priority: 1537, src: `${trial.enis[0]?.primaryIp}/32`, table };
  return { object: 'rule', verb: 'delete', spec };
}
