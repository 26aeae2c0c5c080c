import { finding } from '../catalogue/catalogue.ts';
import { eniId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { ModelEni, ModelPod } from '../model/node-model.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { hopOf, mostSevere, unknownHop } from './hop.ts';

/**
 * Checks whether the VPC routes the address to this ENI, by the last supply that the agent applied. The cloud itself is
 * not asked, so every text names the record as its source.
 */
export function cloudHop(
  { supply, facts }: ExplainContext,
  view: ModelPod,
  ip: string,
  eni: ModelEni | undefined,
): Hop {
  const fields = {
    kind: 'cloud' as const,
    element: `cloud:${ip}`,
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
  const subjects = [fields.element, eniId(eni?.eniId ?? '')];
  const fault = mostSevere(
    supplied === undefined || address === undefined ? notAssigned(view, ip, subjects) : undefined,
    supplied !== undefined && eni?.eniId !== undefined && supplied.eniId !== eni.eniId
      ? elsewhere(view, ip, `${eni.eniId} here, and by the supply that is recorded on ${supplied.eniId}`, subjects)
      : undefined,
    supplied?.attached === false ? notAttached(supplied.eniId, subjects) : undefined,
    address?.state === 'releasing' ? releasing(view, ip, subjects) : undefined,
  );
  return hopOf({ ...fields, details }, fault);
}

function notAssigned(view: ModelPod, ip: string, subjects: readonly string[]): Finding {
  return finding('source-not-ours', {
    what: `by the supply that is recorded no ENI of this node has ${ip}: if so, the VPC drops what ${view.title} sends and leads nothing to it`,
    fix: [
      'tke-eni diff --cloud asks the cloud itself',
      'kubectl describe nec',
      'delete the Pod if the cloud took the address away',
    ],
    subjects,
    isOurs: false,
  });
}

function elsewhere(view: ModelPod, ip: string, where: string, subjects: readonly string[]): Finding {
  return finding('source-not-ours', {
    what: `${ip} of ${view.title} is on ${where}`,
    fix: ['tke-eni diff', 'delete the Pod'],
    subjects,
    isOurs: false,
  });
}

function notAttached(eni: string, subjects: readonly string[]): Finding {
  return finding('eni-detached', {
    what: `by the supply that is recorded ${eni} is not attached to this node, or is being detached`,
    fix: ['look at the ENI in the console and at `kubectl describe nec`'],
    subjects,
  });
}

function releasing(view: ModelPod, ip: string, subjects: readonly string[]): Finding {
  return finding('source-not-ours', {
    what: `${ip} of ${view.title} is being released by ipamd, by the supply that is recorded: the cloud will take it away, or has`,
    fix: ['kubectl describe nec', 'delete the Pod'],
    subjects,
    isOurs: false,
  });
}
