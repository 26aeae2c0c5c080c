import { isIPv4 } from 'node:net';
import { ApiError } from '../api-error.ts';
import type { Params } from '../params.ts';
import { readRuleCheck } from './health-check.ts';
import type { ModelRule } from './types.ts';

const MOST_URL = 200;
const MOST_DOMAIN = 80;
const MOST_SESSION_SECONDS = 86_400;
const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';
/** A name with a wildcard at one end at most. */
const DOMAIN = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})*(?:\\.\\*)?$`);
/** A path; behind `=` one that is exact; behind `~` or `~*` an expression. */
const URL_FORM = /^(?:=?\/[\x21-\x7e]*|~\*? ?[\x21-\x7e]+)$/;

type Settings = Pick<ModelRule, 'scheduler' | 'sessionExpireTime' | 'forwardType' | 'healthCheck'>;

/** Reads the settings of a rule: what is left out stays as it was, or has its default. @throws ApiError */
export function readRuleSettings(params: Params, before?: ModelRule): Settings {
  const sessionExpireTime = params.integer(
    'SessionExpireTime',
    before?.sessionExpireTime ?? 0,
    0,
    MOST_SESSION_SECONDS,
  );
  if (sessionExpireTime !== 0 && sessionExpireTime < 30) {
    throw new ApiError(
      'InvalidParameterValue.Range',
      `SessionExpireTime must be 0, or from 30 to ${MOST_SESSION_SECONDS}.`,
    );
  }
  return {
    scheduler: params.choice('Scheduler', ['WRR', 'LEAST_CONN', 'IP_HASH'], before?.scheduler ?? 'WRR'),
    sessionExpireTime,
    forwardType: params.choice('ForwardType', ['HTTP', 'HTTPS', 'GRPC', 'GRPCS'], before?.forwardType ?? 'HTTP'),
    healthCheck: readRuleCheck(params, before?.healthCheck),
  };
}

/** Reads a path. @throws ApiError */
export function readUrl(params: Params): string {
  const url = params.text('Url', MOST_URL);
  if (url === '') throw new ApiError('InvalidParameterValue.Length', 'Url is empty.');
  if (URL_FORM.test(url)) return url;
  throw new ApiError('InvalidParameter.FormatError', `Url ${url} is no path.`);
}

/** Reads a domain, in lower case; without one it is the address. @throws ApiError */
export function readDomain(params: Params, name: string, vip: string): string {
  const domain = params.text(name, MOST_DOMAIN).toLowerCase();
  if (domain === '' || domain === vip) return vip;
  if (DOMAIN.test(domain) && !isIPv4(domain)) return domain;
  throw new ApiError('InvalidParameter.FormatError', `${name} ${domain} is no domain.`);
}
