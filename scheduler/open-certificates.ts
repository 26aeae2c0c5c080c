import { type CertificateKeeper, openCertificateKeeper } from '../kube/certificates/keep-certificates.ts';
import {
  certificatesInFiles,
  certificatesOfReplicas,
  type ServerCertificates,
} from '../kube/certificates/server-certificates.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { SCHEDULER_PROGRAM, type SchedulerConfig } from './config/options.ts';

/** Dependencies of the certificates. */
type CertificateDeps = {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
};

/**
 * Reads certificates from files, or has the replicas make them; undefined where neither is configured.
 * @throws ConfigError when files cannot be used
 */
export async function openCertificates(
  config: SchedulerConfig,
  deps: CertificateDeps,
  signal: AbortSignal,
): Promise<ServerCertificates | undefined> {
  const { clock, log, random } = deps;
  if (config.tlsSecret !== '') {
    const keeper = openSchedulerKeeper(config, deps);
    return await certificatesOfReplicas({ keeper, asksClients: true, clock, log, random }, signal);
  }
  return config.tlsCertFile === '' ? undefined : certificatesInFiles(config, deps);
}

/** Opens the keeper of the extender's own certificates, among them one of kube-scheduler. */
export function openSchedulerKeeper(
  config: SchedulerConfig,
  { kube, clock, log }: Omit<CertificateDeps, 'random'>,
): CertificateKeeper {
  const { namespace, tlsSecret: name, tlsNames, clientAllowedNames } = config;
  const program = SCHEDULER_PROGRAM.name;
  const client = clientAllowedNames[0] ?? KUBE_SCHEDULER;
  const wanted = { program, names: [serviceNameOf(config), ...tlsNames], client };
  return openCertificateKeeper({ kube, secret: { namespace, name }, wanted, clock, log });
}

/** Returns the name of the extender's Service. */
export function serviceNameOf({ namespace }: Pick<SchedulerConfig, 'namespace'>): string {
  return `${SCHEDULER_PROGRAM.name}.${namespace}.svc`;
}

const KUBE_SCHEDULER = 'system:kube-scheduler';
