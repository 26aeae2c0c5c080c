import { listenerNameOf } from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import type { ServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import { findObserved, type ObservedBalancer } from './find-observed.ts';
import type { GroupFacts, LbCloud } from './lb-facts.ts';

/** Finds the load balancer of a Service. */
export function findObservedService(
  head: ServiceHead,
  clusterId: string | undefined,
  cloud: LbCloud,
  groups?: GroupFacts,
): ObservedBalancer | undefined {
  const { existedLbId } = readAnnotations(head.annotations, head.labels).settings;
  const listenerName = listenerNameOf(clusterId ?? '', head.uid, 'service');
  const owner = { head, listenerName, ...(existedLbId === undefined ? {} : { namedId: existedLbId }) };
  return findObserved(owner, clusterId, cloud, groups);
}
