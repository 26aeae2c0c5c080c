import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { agentPodCommand } from './agent-pod-command.ts';
import { type Check, done, skipped } from './check.ts';

/** Checks that Pods with an exclusive ENI reach Services: their routes need the ranges. */
export const SERVICE_CIDRS_CHECK: Check = {
  id: 'service-cidrs',
  scope: 'on a node with exclusive ENIs: the ranges of Services, which their Pods reach through the node',
  finds: ['service-cidrs-unknown'],
  evaluate: ({ node }) => {
    const agent = ifKnown(node.agent);
    const planned = agent === undefined ? undefined : ifKnown(agent.node)?.node;
    if (planned?.hasDirect !== true) return skipped('the agent plans no exclusive ENI');
    const { serviceCidrs = [] } = planned;
    if (serviceCidrs.length > 0) return done([], [serviceCidrs.join(', ')]);
    const fix = ['kubectl get servicecidr', agentPodCommand(node, 'get')];
    const what = 'the agent knows no range of Services: Pods with an exclusive ENI reach no Service and no cluster DNS';
    return done([finding('service-cidrs-unknown', { what, fix, subjects: [] })]);
  },
};
