import { finding } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import { eniId } from '../node/element-id.ts';
import type { Hop } from './explanation.ts';
import { gravest, hopOf, unknownHop } from './find-hop.ts';
import type { EniView, PodView, Situation } from './find-situation.ts';

/** Checks whether the VPC routes the address to this ENI, by the last supply that the agent applied. */
export function cloudHop({ supply, facts }: Situation, view: PodView, ip: string, eni: EniView | undefined): Hop {
  const parts = {
    kind: 'cloud' as const,
    element: `cloud:${ip}`,
    title: `the VPC leads ${ip} to ${eni?.eniId ?? eni?.title ?? 'this node'}`,
  };
  if (supply === undefined) {
    const { agent } = facts;
    const why = agent.kind === 'unknown' ? agent.why : 'the agent has had no supply yet';
    const next = agent.kind === 'unknown' ? agent.next : 'look at `kubectl describe nec`';
    return unknownHop(parts, why, next);
  }
  const holder = supply.enis.find(({ addresses }) => addresses.some((address) => address.ip === ip));
  const address = holder?.addresses.find((each) => each.ip === ip);
  const details = [
    `supply epoch ${supply.epoch}: ${address === undefined ? 'no ENI of this node has it' : `${holder?.eniId}, ${address.state}, assignment ${address.assignmentId}`}`,
    holder === undefined
      ? undefined
      : `${holder.eniId}: ${holder.attached ? 'attached' : 'not attached'}${holder.draining ? ', draining' : ''}`,
  ];
  const subjects = [parts.element, eniId(eni?.eniId ?? '')];
  const fault = gravest(
    holder === undefined || address === undefined ? notAssigned(view, ip, subjects) : undefined,
    holder !== undefined && eni?.eniId !== undefined && holder.eniId !== eni.eniId
      ? elsewhere(view, ip, `${eni.eniId} here and ${holder.eniId} in the cloud`, subjects)
      : undefined,
    holder?.attached === false ? notAttached(holder.eniId, subjects) : undefined,
    address?.state === 'releasing' ? releasing(view, ip, subjects) : undefined,
  );
  return hopOf({ ...parts, details }, fault);
}

function notAssigned(view: PodView, ip: string, subjects: readonly string[]): Finding {
  return finding('source-not-ours', {
    what: `no ENI of this node has ${ip} by the last supply: the VPC drops what ${view.title} sends and leads nothing to it`,
    fix: ['kubectl describe nec; tke-eni diff', 'delete the Pod if the cloud took the address away'],
    subjects,
    isOurs: false,
  });
}

function elsewhere(view: PodView, ip: string, where: string, subjects: readonly string[]): Finding {
  return finding('source-not-ours', {
    what: `${ip} of ${view.title} is on ${where}`,
    fix: ['tke-eni diff', 'delete the Pod'],
    subjects,
    isOurs: false,
  });
}

function notAttached(eni: string, subjects: readonly string[]): Finding {
  return finding('eni-detached', {
    what: `${eni} is not attached to this node in the cloud, or is being detached`,
    fix: ['look at the ENI in the console and at `kubectl describe nec`'],
    subjects,
  });
}

function releasing(view: PodView, ip: string, subjects: readonly string[]): Finding {
  return finding('source-not-ours', {
    what: `${ip} of ${view.title} is being released by ipamd: the cloud will take it away, or has`,
    fix: ['kubectl describe nec', 'delete the Pod'],
    subjects,
    isOurs: false,
  });
}
