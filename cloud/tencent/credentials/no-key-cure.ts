import type { CredentialSettings } from './choose-source.ts';

const IN_SECRET = 'kube-system/tke-eni-ipamd-credentials with the entries secretId and secretKey';

/**
 * Says how a program that runs in the cluster gets a key, for people.
 * @param program name of the program and of its Deployment
 */
export function noKeyCure(
  { credentials, credentialsFile }: Pick<CredentialSettings, 'credentials' | 'credentialsFile'>,
  program: string,
): string {
  const ofSecret = `Make the Secret ${IN_SECRET}, then "kubectl -n kube-system rollout restart deployment/${program}", as they are read at the start`;
  switch (credentials) {
    case 'auto':
      return `${ofSecret}; or bind a role to the instance, which needs no restart`;
    case 'env':
      return ofSecret;
    case 'file':
      return `Write secretId and secretKey into ${credentialsFile}; it is read again without a restart`;
    case 'role':
      return 'Bind a role to the instance, which needs no restart; or choose another source by --credentials';
    case 'oidc':
      return 'Annotate the ServiceAccount with its role, so that new Pods get the variables TKE_*; or choose another source by --credentials';
  }
}
