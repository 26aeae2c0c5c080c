import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type ContractClient, contractClient } from '../kube-api/contract/client.ts';
import type { SeenPod } from './pods.ts';
import type { RealCluster } from './real-cluster.ts';

/** Opens the cluster's API server for whoever has a token; calls without one are the administrator's. */
export function openApi(cluster: RealCluster): ContractClient {
  const conf = parse(readFileSync(cluster.kubeconfig, 'utf8'));
  const { server, 'certificate-authority-data': ca } = conf.clusters[0].cluster;
  return contractClient(server, conf.users[0].user.token, Buffer.from(ca, 'base64').toString());
}

/** Reads the token that a running Pod has, from its node's disk. @throws RunError when it has none */
export async function tokenOfPod(cluster: RealCluster, pod: Pick<SeenPod, 'uid' | 'node'>): Promise<string> {
  const volumes = `/var/lib/kubelet/pods/${pod.uid}/volumes/kubernetes.io~projected`;
  const token = await cluster.node(pod.node).exec(['sh', '-c', `cat ${volumes}/kube-api-access-*/token`]);
  return token.trim();
}
