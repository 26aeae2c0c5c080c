import { textOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';

/** Two queries of one task by one life are at least so far apart, milliseconds. */
const LEAST_MS = 500;

/**
 * A16: a record makes at most one resource, and a task is followed by one follower of a life.
 */
export const openOneCallEach: OpenAuditor = (world) => {
  const queried = new Map<string, number>();
  return {
    name: 'A16',
    // One that failed is sent again at once.
    sent: ({ life, action, request }) => {
      if (action !== 'DescribeVpcTaskResult') return;
      const before = queried.get(`${life} ${textOf(request['TaskId'])}`) ?? Number.NEGATIVE_INFINITY;
      if (world.time.nowMs - before < LEAST_MS) world.violate('A16', `${life} follows a task twice`);
    },
    answered: ({ life, action, request }) => {
      if (action === 'DescribeVpcTaskResult') queried.set(`${life} ${textOf(request['TaskId'])}`, world.time.nowMs);
    },
    step: () => {
      const names = new Map<string, string>();
      for (const { eniId, name, isPrimary } of world.host.model.state.enis.values()) {
        if (isPrimary) continue;
        const other = names.get(name);
        if (other !== undefined) world.violate('A16', `${eniId} and ${other} are of one record, ${name}`);
        names.set(name, eniId);
      }
    },
  };
};
