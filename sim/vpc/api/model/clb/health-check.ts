import type { HealthCheck } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { Params } from '../params.ts';
import type { ListenerProtocol, ModelHealthCheck } from './types.ts';

const FIELDS = [
  ...['HealthSwitch', 'TimeOut', 'IntervalTime', 'HealthNum', 'UnHealthNum', 'HttpCode', 'HttpCheckPath'],
  ...['HttpCheckDomain', 'HttpCheckMethod', 'HttpVersion', 'CheckPort', 'ContextType', 'SendContext', 'RecvContext'],
  ...['CheckType', 'SourceIpType'],
] as const satisfies readonly (keyof HealthCheck)[];

/** What has health checks: listeners of some protocols, and rules. */
type Checked = ListenerProtocol | 'rule';

/** The kinds of check, the default first. */
const CHECK_TYPES: Readonly<Partial<Record<Checked, readonly string[]>>> = {
  rule: ['HTTP', 'TCP'],
  TCP: ['TCP', 'HTTP', 'CUSTOM'],
  UDP: ['PING', 'CUSTOM'],
  TCP_SSL: ['TCP', 'HTTP'],
  QUIC: ['TCP', 'HTTP'],
};

const DEFAULTS: ModelHealthCheck = {
  HealthSwitch: 1,
  TimeOut: 2,
  IntervalTime: 5,
  HealthNum: 3,
  UnHealthNum: 3,
  HttpCode: 31,
  HttpCheckPath: '/',
  HttpCheckDomain: '',
  HttpCheckMethod: 'HEAD',
  HttpVersion: '',
  CheckPort: -1,
  ContextType: '',
  SendContext: '',
  RecvContext: '',
  CheckType: '',
  SourceIpType: 1,
};

/**
 * Reads `HealthCheck` of a listener: what is left out stays as it was, or has its default.
 * @returns undefined for a protocol whose rules have checks of their own. @throws ApiError
 */
export function readHealthCheck(
  params: Params,
  protocol: Checked,
  before?: ModelHealthCheck,
): ModelHealthCheck | undefined {
  const types = CHECK_TYPES[protocol];
  const given = params.part('HealthCheck', [], FIELDS);
  if (types === undefined) {
    if (given === undefined) return undefined;
    throw refused(`HealthCheck is not for listeners of ${protocol}: their rules have it.`);
  }
  const base = before ?? { ...DEFAULTS, CheckType: types[0] ?? '' };
  if (given === undefined) return base;
  if (given.has('CheckPort') && protocol !== 'TCP' && protocol !== 'UDP') throw refused(`CheckPort with ${protocol}.`);
  const check = readFields(given, base, types);
  if (check.TimeOut >= check.IntervalTime) throw refused('HealthCheck.TimeOut must be less than IntervalTime.');
  if (check.CheckType === 'HTTP' && protocol === 'TCP') {
    if (check.HttpCheckDomain === '') throw refused('HealthCheck.HttpCheckDomain is needed for HTTP on TCP.');
    if (check.HttpVersion === '') throw refused('HealthCheck.HttpVersion is needed for HTTP on TCP.');
  }
  if (check.CheckType === 'CUSTOM') requireContext(check);
  return check;
}

/** Reads `HealthCheck` of a rule, as `readHealthCheck`. @throws ApiError */
export function readRuleCheck(params: Params, before?: ModelHealthCheck): ModelHealthCheck {
  return readHealthCheck(params, 'rule', before) ?? DEFAULTS;
}

function readFields(given: Params, base: ModelHealthCheck, types: readonly string[]): ModelHealthCheck {
  const text = (name: string, before: string, most: number): string =>
    given.has(name) ? given.text(name, most) : before;
  return {
    HealthSwitch: given.integer('HealthSwitch', base.HealthSwitch, 0, 1),
    TimeOut: given.integer('TimeOut', base.TimeOut, 2, 60),
    IntervalTime: given.integer('IntervalTime', base.IntervalTime, 2, 300),
    HealthNum: given.integer('HealthNum', base.HealthNum, 2, 10),
    UnHealthNum: given.integer('UnHealthNum', base.UnHealthNum, 2, 10),
    HttpCode: given.integer('HttpCode', base.HttpCode, 1, 31),
    HttpCheckPath: text('HttpCheckPath', base.HttpCheckPath, 200),
    HttpCheckDomain: text('HttpCheckDomain', base.HttpCheckDomain, 80),
    HttpCheckMethod: given.choice('HttpCheckMethod', ['HEAD', 'GET'], base.HttpCheckMethod),
    HttpVersion: given.choice('HttpVersion', ['HTTP/1.0', 'HTTP/1.1', ''], base.HttpVersion),
    CheckPort: readCheckPort(given, base),
    ContextType: given.choice('ContextType', ['HEX', 'TEXT', ''], base.ContextType),
    SendContext: text('SendContext', base.SendContext, 500),
    RecvContext: text('RecvContext', base.RecvContext, 500),
    CheckType: given.choice('CheckType', types, base.CheckType),
    SourceIpType: given.integer('SourceIpType', base.SourceIpType, 0, 1),
  };
}

function readCheckPort(given: Params, base: ModelHealthCheck): number {
  const port = given.integer('CheckPort', base.CheckPort, -1, 65_535);
  if (port === 0) throw refused('HealthCheck.CheckPort must be a port, or -1.');
  return port;
}

function requireContext({ ContextType, SendContext, RecvContext }: ModelHealthCheck): void {
  if (ContextType === '' || SendContext === '' || RecvContext === '') {
    throw refused('CheckType CUSTOM needs ContextType, SendContext and RecvContext.');
  }
  const pattern = ContextType === 'HEX' ? /^(?:[0-9A-F]{2})+$/ : /^[\x20-\x7e]+$/;
  if (!pattern.test(SendContext) || !pattern.test(RecvContext)) {
    throw refused(`SendContext and RecvContext must be ${ContextType}.`);
  }
}

function refused(text: string): ApiError {
  return new ApiError('InvalidParameterValue', text);
}
