import { chooseBackends } from '../../../cloud-controller-manager/backends/choose-backends.ts';
import type { BackendNode } from '../../../cloud-controller-manager/backends/decide-backend-node.ts';
import { readPodNode } from '../../../cloud-controller-manager/backends/pod-node.ts';
import type { PodBackends } from '../../../cloud-controller-manager/balancers/plan-pod-targets.ts';
import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { readSeen } from '../../../cloud-controller-manager/nodes/seen-instance.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { LbFacts } from './lb-facts.ts';

/** Finds every Node that may be a backend. Instances are not described here: Nodes are believed. */
export function findBackends({ nodes }: Pick<LbFacts, 'nodes'>, vpcId: string): readonly BackendNode[] {
  return chooseBackends((ifKnown(nodes) ?? []).map(readCloudNode), seenOf, vpcId);
}

function seenOf(node: ReturnType<typeof readCloudNode>) {
  const seen = readSeen(node);
  return seen === undefined ? undefined : { vpcId: seen.vpcId, privateIps: [] };
}

/** Finds the Pods of Services, by `namespace/name` of the Service. */
export function findPods({ slices, pods, nodes }: Pick<LbFacts, 'slices' | 'pods' | 'nodes'>) {
  const podByKey = new Map((ifKnown(pods) ?? []).map((pod) => [`${pod.namespace}/${pod.name}`, pod]));
  const nodeByName = new Map((ifKnown(nodes) ?? []).map((node) => [node.metadata.name, node]));
  const ofService = Map.groupBy(ifKnown(slices) ?? [], ({ service }) => service);
  return (service: string): PodBackends => ({
    slices: ofService.get(service) ?? [],
    podOf: (key) => podByKey.get(key),
    nodeOf: (name) => {
      const node = nodeByName.get(name);
      return node === undefined ? undefined : readPodNode(node);
    },
    keepsRoutes: true,
  });
}
