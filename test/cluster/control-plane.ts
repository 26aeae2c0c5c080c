import { join } from 'node:path';

/** Identities and their bearer tokens; the API server knows them from its start. */
export type TokenEntry = { readonly token: string; readonly user: string; readonly groups: readonly string[] };

/** What the daemons of a control plane need to know. Paths are of the machine that the tests run on. */
export type ControlPlaneFacts = {
  readonly assets: string;
  /** Folder of its files. */
  readonly dir: string;
  /** Where nodes and Pods reach it. */
  readonly ip: string;
  /** Addresses of Services. */
  readonly serviceCidr: string;
  /** Certificate and key that the API server serves with; the certificate is its own authority. */
  readonly serving: { readonly certPath: string; readonly keyPath: string };
  /** Certificate and key that it shows to kubelets. */
  readonly kubeletClient: { readonly certPath: string; readonly keyPath: string };
};

/** Addresses of Services where a cluster does not say. */
export const SERVICE_CIDR = '10.96.0.0/16';
/** Port of the API server. */
export const API_PORT = 6_443;

/** Address of the Service `kubernetes`: the first of them. */
export function kubernetesServiceIp(serviceCidr: string): string {
  return serviceCidr.replace(/0\/\d+$/, '1');
}

/** Flags that win over the usual ones of a daemon. */
export type Flags = Readonly<Record<string, string>>;

const ETCD_URL = 'http://127.0.0.1:2379';

/** Makes etcd's command line. */
export function etcdArgv({ dir }: ControlPlaneFacts): readonly string[] {
  return argvOf('etcd', {
    'data-dir': join(dir, 'etcd'),
    'listen-client-urls': ETCD_URL,
    'advertise-client-urls': ETCD_URL,
    'listen-peer-urls': 'http://127.0.0.1:2380',
    'initial-advertise-peer-urls': 'http://127.0.0.1:2380',
    'initial-cluster': 'default=http://127.0.0.1:2380',
    logger: 'zap',
    'log-level': 'warn',
  });
}

/** Makes the API server's command line: RBAC, the node authorizer, every request in the audit log. */
export function apiServerArgv(facts: ControlPlaneFacts, more: Flags): readonly string[] {
  const { assets, dir, ip, serviceCidr, serving, kubeletClient } = facts;
  return argvOf(join(assets, 'kube-apiserver'), {
    'etcd-servers': ETCD_URL,
    'bind-address': '0.0.0.0',
    'secure-port': String(API_PORT),
    'advertise-address': ip,
    'tls-cert-file': serving.certPath,
    'tls-private-key-file': serving.keyPath,
    'client-ca-file': kubeletClient.certPath,
    'token-auth-file': join(dir, 'tokens.csv'),
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'allow-privileged': 'true',
    'service-account-key-file': serving.certPath,
    'service-account-signing-key-file': serving.keyPath,
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-cluster-ip-range': serviceCidr,
    // Its machine has no kube-proxy: it asks the Pods behind the Services of webhooks themselves.
    'enable-aggregator-routing': 'true',
    'kubelet-client-certificate': kubeletClient.certPath,
    'kubelet-client-key': kubeletClient.keyPath,
    'kubelet-preferred-address-types': 'InternalIP',
    'audit-policy-file': join(dir, 'audit-policy.yaml'),
    'audit-log-path': join(dir, 'audit.log'),
    'audit-log-maxsize': '1000',
    profiling: 'false',
    ...more,
  });
}

/** Makes the controller manager's command line. */
export function controllerManagerArgv({ assets, dir, serving }: ControlPlaneFacts, more: Flags): readonly string[] {
  const kubeconfig = join(dir, 'controller-manager.conf');
  return argvOf(join(assets, 'kube-controller-manager'), {
    kubeconfig,
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'bind-address': '127.0.0.1',
    'leader-elect': 'false',
    'use-service-account-credentials': 'true',
    'service-account-private-key-file': serving.keyPath,
    'root-ca-file': serving.certPath,
    'allocate-node-cidrs': 'false',
    ...more,
  });
}

/** Makes the scheduler's command line. */
export function schedulerArgv({ assets, dir }: ControlPlaneFacts, more: Flags): readonly string[] {
  const kubeconfig = join(dir, 'scheduler.conf');
  return argvOf(join(assets, 'kube-scheduler'), {
    kubeconfig,
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'bind-address': '127.0.0.1',
    'leader-elect': 'false',
    ...more,
  });
}

/** Makes kube-proxy's command line: it tells Pods of its node by their interfaces, as docs/install.md wants it. */
export function kubeProxyArgv(executable: string, nodeName: string, more: Flags = {}): readonly string[] {
  return argvOf(executable, {
    kubeconfig: '/etc/kubernetes/kube-proxy.conf',
    'hostname-override': nodeName,
    'proxy-mode': 'iptables',
    'detect-local-mode': 'InterfaceNamePrefix',
    'pod-interface-name-prefix': 'eni',
    // These belong to the whole machine; a network namespace may not set them.
    'conntrack-max-per-core': '0',
    'conntrack-tcp-timeout-established': '0',
    'conntrack-tcp-timeout-close-wait': '0',
    ...more,
  });
}

/** Makes the file of static tokens. @see kube-apiserver --token-auth-file */
export function renderTokens(entries: readonly TokenEntry[]): string {
  return entries.map(({ token, user, groups }) => `${token},${user},${user},"${groups.join(',')}"\n`).join('');
}

/** Records who asked for what, of every request, once it is answered. */
export const AUDIT_POLICY = JSON.stringify({
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
});

function argvOf(executable: string, flags: Flags): readonly string[] {
  return [executable, ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)];
}
