import { addressElement } from '../judge/compare-supply.ts';
import type { ModelEni } from '../model/node-model.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { hopOf, unknownHop } from './hop.ts';

/** Shows whether the VPC leads the address to this ENI, by the last supply that the agent applied. The cloud itself is not asked. */
export function cloudHop({ supply, facts, assessment }: ExplainContext, ip: string, eni: ModelEni | undefined): Hop {
  const fields = {
    kind: 'cloud' as const,
    element: addressElement(ip),
    title: `by the supply that is recorded the VPC leads ${ip} to ${eni?.eniId ?? eni?.title ?? 'this node'}`,
  };
  if (supply === undefined) {
    const { agent } = facts;
    const why = agent.kind === 'unknown' ? agent.why : 'the agent has had no supply yet';
    const next = agent.kind === 'unknown' ? agent.next : 'look at `kubectl describe nec`';
    return unknownHop(fields, why, next);
  }
  const supplied = supply.enis.find(({ addresses }) => addresses.some((address) => address.ip === ip));
  const address = supplied?.addresses.find((each) => each.ip === ip);
  const details = [
    `supply epoch ${supply.epoch}: ${address === undefined ? 'no ENI of this node has it' : `${supplied?.eniId}, ${address.state}, assignment ${address.assignmentId}`}`,
    supplied === undefined
      ? undefined
      : `${supplied.eniId}: ${supplied.attached ? 'attached' : 'not attached'}${supplied.draining ? ', draining' : ''}`,
  ];
  return hopOf({ ...fields, details }, assessment.about(fields.element, ['source-not-ours', 'eni-detached']));
}
