import { listenerNameOf } from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { readAnnotations } from '../../../cloud-controller-manager/services/read-annotations.ts';
import { readPorts } from '../../../cloud-controller-manager/services/read-ports.ts';
import { readServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { findObserved, type ObservedBalancer } from './find-observed.ts';
import type { GroupFacts, LbCloud } from './lb-facts.ts';

/** Finds the load balancer of a Service. */
export function findObservedService(
  object: KubeObject,
  clusterId: string | undefined,
  cloud: LbCloud,
  groups?: GroupFacts,
): ObservedBalancer | undefined {
  const head = readServiceHead(object);
  const ports = readPorts(object).map(({ protocol, port }) => `${protocol}/${port}`);
  const { existedLbId } = readAnnotations(head.annotations, head.labels).settings;
  const listenerName = listenerNameOf(clusterId ?? '', head.uid, 'service');
  const owner = {
    head,
    listenerName,
    wanted: new Set(ports),
    ...(existedLbId === undefined ? {} : { namedId: existedLbId }),
  };
  return findObserved(owner, clusterId, cloud, groups);
}
