import type { HealthCheck } from '../../cloud/health-check.ts';
import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { TkeServiceConfig } from '../../crd/tke-service-config.ts';
import { checkTimesOf, isTooLong, sessionSecondsOf } from './configured-times.ts';

/** What a TkeServiceConfig says of a load balancer. */
export type LoadBalancerConfig = NonNullable<NonNullable<TkeServiceConfig['spec']>['loadBalancer']>;
type L4Listener = NonNullable<LoadBalancerConfig['l4Listeners']>[number];
type L4Check = NonNullable<L4Listener['healthCheck']>;

/** The settings of a listener, and what of its configuration has no effect. */
type ConfiguredListener = { readonly settings: ListenerSettings; readonly unused: readonly string[] };

/** What a Service itself asks of a listener. */
type PlannedListener = {
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  readonly settings: ListenerSettings;
  /** Whether the Service needs its health check as it is: externalTrafficPolicy Local asks healthCheckNodePort. */
  readonly needsItsCheck: boolean;
  /** Whether the session is the affinity of the Service. */
  readonly hasAffinity: boolean;
};

/**
 * Puts the settings of a TkeServiceConfig over those that a Service asks for. A setting that neither of them names is absent,
 * so that it stays as it is in the cloud, and a listener for which the configuration has no entry is as without one.
 */
export function configureListener(
  planned: PlannedListener,
  config: LoadBalancerConfig | undefined,
): ConfiguredListener {
  const entry = config?.l4Listeners?.find(
    ({ protocol, port }) => protocol === planned.protocol && port === planned.port,
  );
  if (entry === undefined) return { settings: planned.settings, unused: [] };
  const { scheduler: _, sessionSeconds, healthCheck: own, ...rest } = planned.settings;
  const check = configureCheck(planned, entry.healthCheck, own);
  const late = entry.healthCheck !== undefined && isTooLong(entry.healthCheck) ? ['healthCheck.timeout'] : [];
  const session = sessionSecondsOf(entry.session) ?? (planned.hasAffinity ? sessionSeconds : undefined);
  return {
    settings: {
      ...rest,
      ...(entry.scheduler === undefined ? {} : { scheduler: entry.scheduler }),
      ...(session === undefined ? {} : { sessionSeconds: session }),
      ...(check.value === undefined ? {} : { healthCheck: check.value }),
    },
    unused: [...check.unused, ...late, ...(entry.proxyProtocol?.enable === true ? ['proxyProtocol'] : [])],
  };
}

function configureCheck(
  { protocol, needsItsCheck }: PlannedListener,
  config: L4Check | undefined,
  own: HealthCheck | undefined,
): { readonly value?: HealthCheck; readonly unused: readonly string[] } {
  if (config === undefined) return { ...(own === undefined ? {} : { value: own }), unused: [] };
  if (needsItsCheck) return { value: { ...own, ...checkTimesOf(config) }, unused: usedNames(config, OF_KIND) };
  if (config.enable === false) return { value: { isOn: false }, unused: [] };
  // A UDP listener is checked only where the configuration says how.
  if (protocol === 'UDP' && config.enable !== true) return { value: { isOn: false }, unused: usedNames(config, ALL) };
  const kind = config.checkType ?? (protocol === 'UDP' ? 'PING' : 'TCP');
  const value: HealthCheck = {
    isOn: true,
    kind,
    checkPort: config.checkPort ?? 'target',
    ...checkTimesOf(config),
    ...(config.sourceIpType === undefined
      ? {}
      : { source: config.sourceIpType === 1 ? 'shared-range' : ('vip' as const) }),
    ...(kind === 'HTTP' ? { http: httpOf(config) } : {}),
    ...(kind === 'CUSTOM' && config.sendContext !== undefined && config.recvContext !== undefined
      ? {
          exchange: {
            format: config.contextType ?? 'TEXT',
            send: config.sendContext,
            receive: config.recvContext,
          },
        }
      : {}),
  };
  return {
    value,
    unused: [
      ...(kind === 'HTTP' ? [] : usedNames(config, OF_HTTP)),
      ...(kind === 'CUSTOM' ? [] : usedNames(config, OF_EXCHANGE)),
    ],
  };
}

function httpOf(config: L4Check): NonNullable<HealthCheck['http']> {
  return {
    path: config.httpCheckPath ?? '/',
    // A listener of TCP has no host of its own: the cloud wants one.
    domain: config.httpCheckDomain ?? 'health',
    method: config.httpCheckMethod ?? 'HEAD',
    version: config.httpVersion ?? 'HTTP/1.1',
    ...(config.httpCode === undefined ? {} : { codes: config.httpCode }),
  };
}

const OF_HTTP = ['httpCode', 'httpCheckPath', 'httpCheckDomain', 'httpCheckMethod', 'httpVersion'] as const;
const OF_EXCHANGE = ['contextType', 'sendContext', 'recvContext'] as const;
const OF_KIND = ['enable', 'checkType', 'checkPort', 'sourceIpType', ...OF_HTTP, ...OF_EXCHANGE] as const;
const ALL = [...OF_KIND, 'intervalTime', 'timeout', 'healthNum', 'unHealthNum'] as const;

function usedNames(config: L4Check, names: readonly (keyof L4Check)[]): readonly string[] {
  return names.filter((name) => config[name] !== undefined).map((name) => `healthCheck.${name}`);
}
