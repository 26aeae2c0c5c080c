import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { SCHEDULER_PROGRAM, type SchedulerConfig } from './options.ts';

/**
 * Reads the settings of the scheduler extender. Pure but for `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readSchedulerConfig(input: SettingsInput): SettingsOutcome<SchedulerConfig> {
  return readSettings(SCHEDULER_PROGRAM, input, checkTogether);
}

/** The share of a lease for which its holder trusts it: in it a renewal must fit, and another try at it. */
const TRUSTED_SHARE = 0.75;

function checkTogether(config: SchedulerConfig, faults: Faults): void {
  const { tlsCertFile, tlsPrivateKeyFile, clientCaFile } = config;
  if (config.listenAddress === '') faults.add('--listen-address', 'an address', '');
  if (tlsCertFile !== '' && tlsPrivateKeyFile === '') {
    faults.add('--tls-private-key-file', 'a file, as --tls-cert-file is given', undefined);
  }
  if (tlsCertFile === '' && tlsPrivateKeyFile !== '') {
    faults.add('--tls-cert-file', 'a file, as --tls-private-key-file is given', undefined);
  }
  if (clientCaFile !== '' && tlsCertFile === '') {
    faults.add('--tls-cert-file', 'a file, as --client-ca-file is given', undefined);
  }
  const trustedMs = config.leaderElectLeaseMs * TRUSTED_SHARE;
  const renewedMs = config.leaderElectRenewMs + config.leaderElectRetryMs;
  if (renewedMs > trustedMs) {
    const most = `with --leader-elect-retry at most three quarters of --leader-elect-lease, ${trustedMs} ms`;
    faults.add('--leader-elect-renew', most, renewedMs);
  }
  if (config.kubeClientBurst < config.kubeClientQps) {
    faults.add('--kube-client-burst', `at least --kube-client-qps, ${config.kubeClientQps}`, config.kubeClientBurst);
  }
}
