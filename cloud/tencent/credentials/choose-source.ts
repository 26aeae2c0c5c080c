import type { Clock } from '../../../runtime/clock.ts';
import { isCloudError } from '../../cloud-error.ts';
import { openSdkApi, type TencentEndpoint } from '../sdk-api.ts';
import { type CredentialSource, type FetchCredential, type KeyFailureListener, NoKeyError } from './credential.ts';
import {
  type AssumedRole,
  fromAssumedRole,
  fromEnvironment,
  fromFile,
  fromFirstOf,
  fromInstanceRole,
  fromWebIdentity,
  type HttpGet,
  webIdentityOfEnvironment,
} from './fetch-sources.ts';
import { createRotatingSource } from './rotating.ts';

/** Where credentials come from. */
export type CredentialSettings = {
  /**
   * `env`: variables. `file`: `credentialsFile`. `role`: the instance's role, by the metadata service. `oidc`: the
   * ServiceAccount's role, by STS. `auto`: the first of oidc, file, env and role that returns one, selected again each
   * time.
   */
  readonly credentials: 'auto' | 'env' | 'file' | 'role' | 'oidc';
  /** Empty for none. */
  readonly credentialsFile: string;
  /** A role to assume with the key that was found; empty to sign with that key itself. */
  readonly stsRoleArn: string;
  readonly metadataUrl: string;
  /** The name under which the cloud's audit log records who assumed a role. */
  readonly sessionName: string;
};

/** Dependencies for fetching credentials. */
export type CredentialDeps = {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly get: HttpGet;
  /** The endpoint of STS; the same as that of the other products. */
  readonly endpoint: TencentEndpoint;
  /** What to do where there is no key, for people; absent: the caller says it. */
  readonly cure?: string;
  /** Called when there is no key, or no role for it, and why. */
  readonly onKeyFailure?: KeyFailureListener | undefined;
};

/**
 * Creates the source that the settings name. It fetches nothing before its first use, and renews credentials by itself.
 */
export function credentialSourceOf(settings: CredentialSettings, deps: CredentialDeps): CredentialSource {
  const { clock, cure, onKeyFailure: onFailure } = deps;
  const source = createRotatingSource(clock, fetcherOf(settings, deps), {
    onFailure,
    stsCure: OIDC_CURE,
    ...(cure !== undefined && { cure }),
  });
  if (settings.stsRoleArn === '') return source;
  const role = { roleArn: settings.stsRoleArn, sessionName: settings.sessionName };
  const stsCure = `Grant the action sts:AssumeRole on ${role.roleArn} to the user or role of the key, and name that in the trust policy of the role`;
  return createRotatingSource(clock, fromRoleOf(source, role, deps.endpoint), { onFailure, stsCure });
}

const OIDC_CURE =
  'Name the identity provider of the cluster, and the ServiceAccount, in the trust policy of the role that the ServiceAccount is annotated with';

/** Assumes a role with a key that may be rotated at any time: after one refusal the key is fetched again. */
function fromRoleOf(source: CredentialSource, role: AssumedRole, endpoint: TencentEndpoint): FetchCredential {
  const fetch = fromAssumedRole(openSdkApi(endpoint, source), role);
  return async (signal) => {
    try {
      return await fetch(signal);
    } catch (error) {
      if (!isCloudError(error, 'credentials')) throw error;
      source.invalidate();
      return await fetch(signal);
    }
  };
}

/** STS requires no signature when a token of the ServiceAccount identifies the caller. */
const UNSIGNED: CredentialSource = {
  get: async () => ({ secretId: '', secretKey: '' }),
  invalidate: () => undefined,
};

function fetcherOf(settings: CredentialSettings, { env, get, endpoint }: CredentialDeps): FetchCredential {
  const identity = webIdentityOfEnvironment(env, settings.sessionName);
  const oidc: FetchCredential =
    identity === undefined
      ? () =>
          Promise.reject(
            new NoKeyError('environment: TKE_PROVIDER_ID, TKE_ROLE_ARN, TKE_WEB_IDENTITY_TOKEN_FILE not set'),
          )
      : fromWebIdentity(openSdkApi(endpoint, UNSIGNED), identity);
  const file = fromFile(settings.credentialsFile);
  const role = fromInstanceRole(get, settings.metadataUrl);
  switch (settings.credentials) {
    case 'oidc':
      return oidc;
    case 'file':
      return file;
    case 'env':
      return fromEnvironment(env);
    case 'role':
      return role;
    case 'auto':
      return fromFirstOf([
        ...(identity === undefined ? [] : [oidc]),
        ...(settings.credentialsFile === '' ? [] : [file]),
        fromEnvironment(env),
        role,
      ]);
  }
}
