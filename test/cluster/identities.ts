import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import {
  API_PORT,
  AUDIT_POLICY,
  type ControlPlaneFacts,
  kubernetesServiceIp,
  renderTokens,
  type TokenEntry,
} from './control-plane.ts';

/** Who is who in a cluster. */
export type Identities = {
  readonly facts: ControlPlaneFacts;
  /** Certificate that kubelets know the API server by, in PEM. */
  readonly kubeletClientCa: string;
  /** Makes a kubeconfig of a user. @throws Error when there is no such user */
  kubeconfigOf(user: string, url: string): string;
};

/** The user who may do everything. */
export const ADMIN_USER = 'kubernetes-admin';
/** User of every kube-proxy. */
export const KUBE_PROXY_USER = 'system:kube-proxy';

/** User of a node's kubelet. */
export function nodeUser(name: string): string {
  return `system:node:${name}`;
}

/** Makes certificates and tokens in a folder, and the files there that the control plane reads at its start. */
export async function makeIdentities(
  place: Pick<ControlPlaneFacts, 'assets' | 'dir' | 'ip' | 'serviceCidr'>,
  nodeNames: readonly string[],
): Promise<Identities> {
  const { dir, ip, serviceCidr } = place;
  const dns = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const [serving, kubeletClient] = await Promise.all([
    makeKeyPair(dir, 'apiserver', { ips: [ip, kubernetesServiceIp(serviceCidr)], dns }),
    makeKeyPair(dir, 'kubelet-client', { subject: '/O=system:masters/CN=kube-apiserver-kubelet-client' }),
  ]);
  const tokens = [
    newToken(ADMIN_USER, ['system:masters']),
    newToken(KUBE_PROXY_USER),
    newToken('system:kube-controller-manager'),
    newToken('system:kube-scheduler'),
    ...nodeNames.map((name) => newToken(nodeUser(name), ['system:nodes'])),
  ];
  const kubeconfigOf = (user: string, url: string): string => {
    const entry = tokens.find((one) => one.user === user);
    if (entry === undefined) throw new Error(`${user}: no such user of this cluster`);
    return renderKubeconfig({ url, token: entry.token, ca: serving.cert });
  };
  writeFileSync(join(dir, 'tokens.csv'), renderTokens(tokens), { mode: 0o600 });
  writeFileSync(join(dir, 'audit-policy.yaml'), AUDIT_POLICY);
  for (const name of ['controller-manager', 'scheduler'])
    writeFileSync(join(dir, `${name}.conf`), kubeconfigOf(`system:kube-${name}`, `https://127.0.0.1:${API_PORT}`));
  return { facts: { ...place, serving, kubeletClient }, kubeletClientCa: kubeletClient.cert, kubeconfigOf };
}

function newToken(user: string, groups: readonly string[] = []): TokenEntry {
  return { token: randomBytes(16).toString('hex'), user, groups };
}
