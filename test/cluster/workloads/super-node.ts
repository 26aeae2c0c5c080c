import { POD_ANNOTATION } from '../../../crd/names.ts';
import { at } from '../../kube-api/contract/contract-case.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { tellOurPods } from '../deploy.ts';
import type { RealCluster } from '../real-cluster.ts';

/** What ipamd gave to a Pod of a super node. */
type Allocation = { readonly ip: string; readonly claim: string };

/** Makes the Node of a super node, Ready as its virtual kubelet would write it. Nothing runs behind it. */
export async function joinSuperNode(cluster: RealCluster, name: string): Promise<void> {
  const labels = { 'node.kubernetes.io/instance-type': 'eklet', 'kubernetes.io/os': 'linux' };
  const spec = { providerID: `qcloud:///100003/${name}` };
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec }));
  const condition = { type: 'Ready', status: 'True', reason: 'VirtualKubelet', message: 'ready' };
  const now = new Date().toISOString();
  const conditions = [{ ...condition, lastHeartbeatTime: now, lastTransitionTime: now }];
  await patchStatus(cluster, `node/${name}`, { conditions });
}

/**
 * Does what a virtual kubelet does: waits until the annotation of a Pod gives an address to this Pod, and writes that it
 * runs with it. @throws Error with what our Pods say when there is none in time
 */
export async function runOnSuperNode(cluster: RealCluster, name: string, node: string): Promise<Allocation> {
  const found = await waitUntil(
    async () => {
      const { code, stdout } = await cluster.tryKubectl(['get', 'pod', name, '-o', 'json']);
      const pod: unknown = code === 0 ? JSON.parse(stdout) : undefined;
      const text = at(pod, 'metadata', 'annotations', POD_ANNOTATION.vpcIpAllocation);
      if (at(pod, 'spec', 'nodeName') !== node || typeof text !== 'string') return undefined;
      const allocation: unknown = JSON.parse(text);
      if (at(allocation, 'uid') !== at(pod, 'metadata', 'uid')) return undefined;
      return { ip: String(at(allocation, 'ip')), claim: String(at(allocation, 'claim')) };
    },
    { what: `an address for ${name} on ${node}`, timeoutMs: 60_000, everyMs: 500 },
  ).catch(async (error: Error) => {
    const claim = await cluster.tryKubectl(['get', 'vipc', name, '-o', 'yaml']);
    throw new Error(`${error.message}\n${claim.stdout}${await tellOurPods(cluster)}`);
  });
  const { ip } = found;
  await patchStatus(cluster, `pod/${name}`, { phase: 'Running', podIP: ip, podIPs: [{ ip }] });
  return found;
}

async function patchStatus(cluster: RealCluster, object: string, status: object): Promise<void> {
  const patch = JSON.stringify({ status });
  await cluster.kubectl('patch', object, '--subresource=status', '--type=merge', '-p', patch);
}
