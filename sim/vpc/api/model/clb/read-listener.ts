import { ApiError } from '../api-error.ts';
import type { Params } from '../params.ts';
import type { CloudState } from '../state.ts';
import type { ClbState } from './clb-state.ts';
import { readHealthCheck } from './health-check.ts';
import { readCertificates } from './layer7.ts';
import type { ListenerProtocol, ModelCertificates, ModelLayer7, ModelListener, ModelLoadBalancer } from './types.ts';

/** All protocols. */
export const LISTENER_PROTOCOLS: readonly ListenerProtocol[] = ['TCP', 'UDP', 'HTTP', 'HTTPS', 'TCP_SSL', 'QUIC'];

const IDLE_SECONDS: Readonly<Partial<Record<ListenerProtocol, number>>> = { TCP: 900, UDP: 300 };
const LAYER_7: readonly ListenerProtocol[] = ['HTTP', 'HTTPS'];
const NEED_CERTIFICATE: readonly ListenerProtocol[] = ['HTTPS', 'TCP_SSL', 'QUIC'];

type Settings = Omit<ModelListener, 'listenerId' | 'name' | 'protocol' | 'port' | 'createdAtMs' | 'targets'>;

/** Reads the settings of a listener: what is left out stays as it was, or has its default. @throws ApiError */
export function readListener(
  state: CloudState,
  params: Params,
  protocol: ListenerProtocol,
  before?: ModelListener,
): Settings {
  const isPlain = protocol === 'TCP' || protocol === 'UDP';
  for (const name of ['SessionExpireTime', 'IdleConnectTimeout', 'DeregisterTargetRst']) {
    if (params.has(name) && !isPlain) throw refused(`${name} is for listeners of TCP and UDP, not of ${protocol}.`);
  }
  if (params.has('Scheduler') && LAYER_7.includes(protocol)) throw refused(`Scheduler is a setting of a rule.`);
  requireSimulated(params);
  const certificates = readCertificates(state, params);
  const layer7 = readLayer7(params, protocol, certificates, before);
  const hasOne = certificates !== undefined || before !== undefined || layer7?.isSni === true;
  if (NEED_CERTIFICATE.includes(protocol) && !hasOne) {
    throw new ApiError('MissingParameter', `The parameter Certificate is missing: ${protocol} needs one.`);
  }
  const healthCheck = readHealthCheck(params, protocol, before?.healthCheck);
  const idle = params.integer('IdleConnectTimeout', before?.idleConnectTimeout ?? IDLE_SECONDS[protocol] ?? 0, 0, 1980);
  if (isPlain && idle < 10) throw new ApiError('InvalidParameterValue.Range', 'IdleConnectTimeout is below 10.');
  return {
    ...(healthCheck === undefined ? {} : { healthCheck }),
    scheduler: params.choice('Scheduler', ['WRR', 'LEAST_CONN', 'IP_HASH'], before?.scheduler ?? 'WRR'),
    sessionExpireTime: readSession(params, before),
    deregisterTargetRst: readReset(state.clb, params, protocol, before),
    ...(isPlain ? { idleConnectTimeout: idle } : {}),
    ...(layer7 === undefined ? {} : { layer7 }),
  };
}

/** SNI is for HTTPS, and stays on: with it domains have the certificates, without it the listener. */
function readLayer7(
  params: Params,
  protocol: ListenerProtocol,
  certificates: ModelCertificates | undefined,
  before: ModelListener | undefined,
): ModelLayer7 | undefined {
  const wasSni = before?.layer7?.isSni ?? false;
  const isSni = params.integer('SniSwitch', wasSni ? 1 : 0, 0, 1) === 1;
  if (isSni && protocol !== 'HTTPS') throw refused(`SniSwitch is for listeners of HTTPS, not of ${protocol}.`);
  if (wasSni && !isSni) throw refused('SniSwitch cannot be switched off.');
  if (certificates !== undefined && isSni) throw refused('With SNI the domains have the certificates.');
  if (certificates !== undefined && !NEED_CERTIFICATE.includes(protocol))
    throw refused(`Certificate with ${protocol}.`);
  if (!LAYER_7.includes(protocol)) return undefined;
  const { certificates: old, ...rest } = before?.layer7 ?? { rules: new Map(), isSni, domains: new Map() };
  const own = certificates ?? old;
  if (!isSni || wasSni) return { ...rest, isSni, ...(own === undefined ? {} : { certificates: own }) };
  // What the listener had goes to its domains.
  const names = old === undefined ? [] : [...rest.rules.values()].map(({ domain }) => [domain, old] as const);
  return { ...rest, isSni, domains: new Map(names) };
}

/**
 * Refuses ports that are taken on the load balancer. TCP and UDP are apart; what speaks over TCP, or over UDP, shares its
 * ports. @throws ApiError InvalidParameter.PortCheckFailed
 */
export function requireFreePorts(
  balancer: ModelLoadBalancer,
  protocol: ListenerProtocol,
  ports: readonly number[],
): void {
  const same = [...balancer.listeners.values()].filter((one) => isOverUdp(one.protocol) === isOverUdp(protocol));
  const taken = new Set(same.map(({ port }) => port));
  for (const port of ports) {
    if (taken.has(port)) {
      throw new ApiError('InvalidParameter.PortCheckFailed', `The port ${port} of ${protocol} is in use.`);
    }
    taken.add(port);
  }
}

function isOverUdp(protocol: ListenerProtocol): boolean {
  return protocol === 'UDP' || protocol === 'QUIC';
}

/** Refuses what the API has and the model has not. */
function requireSimulated(params: Params): void {
  if (params.flag('SnatEnable') === true) throw new ApiError('UnsupportedOperation', 'SnatEnable is not simulated.');
  params.choice('TargetType', ['NODE'], 'NODE');
  params.choice('SessionType', ['NORMAL'], 'NORMAL');
}

function readSession(params: Params, before: ModelListener | undefined): number {
  const seconds = params.integer('SessionExpireTime', before?.sessionExpireTime ?? 0, 0, 3600);
  if (seconds === 0 || seconds >= 30) return seconds;
  throw new ApiError('InvalidParameterValue.Range', 'SessionExpireTime must be 0, or from 30 to 3600.');
}

function readReset(
  clb: ClbState,
  params: Params,
  protocol: ListenerProtocol,
  before: ModelListener | undefined,
): boolean {
  const isWanted = params.flag('DeregisterTargetRst');
  if (isWanted === true && protocol === 'UDP' && clb.spec.reschedulesUdp !== true) {
    throw new ApiError('FailedOperation', 'Uin does not support reschedule function');
  }
  return isWanted ?? before?.deregisterTargetRst ?? false;
}

function refused(text: string): ApiError {
  return new ApiError('InvalidParameterValue', text);
}
