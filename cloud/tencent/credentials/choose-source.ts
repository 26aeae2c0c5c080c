import type { Clock } from '../../../runtime/clock.ts';
import { isCloudError } from '../../cloud-error.ts';
import { openSdkApi, type TencentEndpoint } from '../sdk-api.ts';
import type { CredentialSource, FetchCredential } from './credential.ts';
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
   * `env`: variables. `file`: `credentialsFile`. `role`: the instance's, by the metadata service. `oidc`: the
   * ServiceAccount's, by STS. `auto`: the first of oidc, file, env and role that gives one, asked anew each time.
   */
  readonly credentials: 'auto' | 'env' | 'file' | 'role' | 'oidc';
  /** '' for none. */
  readonly credentialsFile: string;
  /** A role to take on with the key that was found; '' to sign with that key itself. */
  readonly stsRoleArn: string;
  readonly metadataUrl: string;
  /** Under this name the cloud's audit log shows who took on a role. */
  readonly sessionName: string;
};

/** What credentials are fetched with. */
export type CredentialDeps = {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly get: HttpGet;
  /** Where STS is; the same endpoint as the other products'. */
  readonly endpoint: TencentEndpoint;
};

/** Makes the source that the settings name. It fetches nothing before it is asked, and goes with the times by itself. */
export function credentialSourceOf(settings: CredentialSettings, deps: CredentialDeps): CredentialSource {
  const own = createRotatingSource(deps.clock, fetchOf(settings, deps));
  if (settings.stsRoleArn === '') return own;
  const role = { roleArn: settings.stsRoleArn, sessionName: settings.sessionName };
  return createRotatingSource(deps.clock, fromRoleOf(own, role, deps.endpoint));
}

/** Takes on a role with a key that may be rotated away at any time: refused once, the key is fetched anew. */
function fromRoleOf(own: CredentialSource, role: AssumedRole, endpoint: TencentEndpoint): FetchCredential {
  const fetch = fromAssumedRole(openSdkApi(endpoint, own), role);
  return async (signal) => {
    try {
      return await fetch(signal);
    } catch (error) {
      if (!isCloudError(error, 'credentials')) throw error;
      own.invalidate();
      return await fetch(signal);
    }
  };
}

/** STS takes no signature where a token of the ServiceAccount says who asks. */
const UNSIGNED: CredentialSource = {
  get: async () => ({ secretId: '', secretKey: '' }),
  invalidate: () => undefined,
};

function fetchOf(settings: CredentialSettings, { env, get, endpoint }: CredentialDeps): FetchCredential {
  const identity = webIdentityOfEnvironment(env, settings.sessionName);
  const oidc: FetchCredential =
    identity === undefined
      ? () =>
          Promise.reject(new Error('environment: TKE_PROVIDER_ID, TKE_ROLE_ARN, TKE_WEB_IDENTITY_TOKEN_FILE not set'))
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
