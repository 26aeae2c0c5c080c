import { planRules } from '../../../cloud-controller-manager/ingresses/plan-rules.ts';
import { readAnnotations } from '../../../cloud-controller-manager/ingresses/read-annotations.ts';
import type { PathType } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import { readIngressSpec } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';

type PlanFacts = Parameters<typeof planRules>[0];

/** 2026-01-01, milliseconds since the epoch. */
export const NOW_MS = 1_767_225_600_000;

/** The Secrets of the scene: `ids` has a certificate of the cloud, `locked` may not be read. */
export function secretOf(name: string): ReturnType<PlanFacts['secretOf']> {
  if (name === 'locked') return { kind: 'forbidden' };
  if (name === 'unknown') return { kind: 'unknown' };
  if (!name.startsWith('ids')) return { kind: 'missing' };
  return { kind: 'found', type: 'Opaque', data: { qcloud_cert_id: Buffer.from('abcd1234').toString('base64') } };
}

/** A path of the Service `web`, or of another. */
export function path(
  text: string,
  pathType: PathType = 'ImplementationSpecific',
  service = 'web',
  port: object = { number: 80 },
) {
  return { path: text, pathType, backend: { service: { name: service, port } } };
}

/** Plans an Ingress: Service `web` has the port 80 (http), `udp` is of UDP, `bare` has no node port. */
export function plan(
  spec: object,
  annotations: Readonly<Record<string, string>> = {},
  more: Partial<PlanFacts> = {},
): ReturnType<typeof planRules> & { readonly texts: readonly string[] } {
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'a', namespace: 'd' }, spec };
  const read = readAnnotations(annotations);
  const planned = planRules({
    spec: readIngressSpec(object),
    settings: read.settings,
    secretOf,
    portsOf: (service) => {
      if (service === 'gone') return 'missing';
      if (service === 'early') return 'unknown';
      const port = { name: 'http', port: 80, protocol: service === 'udp' ? 'UDP' : 'TCP' } as const;
      return [service === 'bare' ? port : { ...port, nodePort: 30_080 }];
    },
    targetsOf: (service) => ({ targets: [{ ip: `10.0.0.${service.length}`, port: 30_080, weight: 10 }] }),
    nowMs: NOW_MS,
    ...more,
  });
  const notices = [...read.notices, ...planned.notices];
  return { ...planned, notices, texts: notices.map(({ reason, message }) => `${reason}: ${message}`) };
}

/** Renders listeners: `HTTP:80 a.example =/a`, with `-> ` where a rule redirects. */
export function render(listeners: ReturnType<typeof planRules>['listeners']): readonly string[] {
  return listeners.flatMap(({ protocol, port, rules }) =>
    rules.map(({ domain, url, redirect }) => {
      const to =
        redirect === undefined
          ? ''
          : ` -> ${redirect.code} ${redirect.protocol}:${redirect.port} ${redirect.domain} ${redirect.url}`;
      return `${protocol}:${port} ${domain} ${url}${to}`;
    }),
  );
}
