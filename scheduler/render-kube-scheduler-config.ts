import { isIPv6 } from 'node:net';
import { EXTENDED_RESOURCES } from '../crd/names.ts';

/** What kube-scheduler has to know of the extender. */
type ExtenderAccess = {
  /** DNS name or address of the extender's Service. */
  readonly host: string;
  /** Authorities of the extender's certificate, PEM. */
  readonly authorities: string;
  /** Certificate and key by which kube-scheduler shows itself, PEM. */
  readonly client: { readonly cert: string; readonly key: string };
};

/**
 * Renders the file that kube-scheduler's `--config` names, as `conf/kubernetes/scheduler/kube-scheduler-configuration.yaml`
 * explains it, with certificates in it instead of files. It contains a private key.
 * @see https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/ ExtenderTLSConfig
 */
export function renderKubeSchedulerConfig({ host, authorities, client }: ExtenderAccess): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
leaderElection:
  leaderElect: true
extenders:
  - urlPrefix: https://${isIPv6(host) ? `[${host}]` : host}
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    preemptVerb: preempt
    weight: 10
    enableHTTPS: true
    tlsConfig:
      caData: ${base64(authorities)}
      certData: ${base64(client.cert)}
      keyData: ${base64(client.key)}
    httpTimeout: 15s
    nodeCacheCapable: true
    managedResources:
${EXTENDED_RESOURCES.map((name) => `      - name: ${name}\n        ignoredByScheduler: false\n`).join('')}    ignorable: false
`;
}
