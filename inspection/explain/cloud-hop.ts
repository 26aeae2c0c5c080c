import { addressElement, findSupplied } from '../judge/compare-supply.ts';
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
  const found = findSupplied(supply, ip);
  const { eniId, attached, draining } = found?.eni ?? {};
  const details = [
    `supply epoch ${supply.epoch}: ${found === undefined ? 'no ENI of this node has it' : `${eniId}, ${found.address.state}, assignment ${found.address.assignmentId}`}`,
    found === undefined
      ? undefined
      : `${eniId}: ${attached === true ? 'attached' : 'not attached'}${draining === true ? ', draining' : ''}`,
  ];
  return hopOf({ ...fields, details }, assessment.about(fields.element, ['source-not-ours', 'eni-detached']));
}
