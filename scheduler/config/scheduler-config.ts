import type { Faults } from '../../runtime/decode.ts';
import { isLoopbackAddress } from '../../runtime/loopback-address.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { SCHEDULER_PROGRAM, type SchedulerConfig } from './options.ts';

/**
 * Reads the settings of the scheduler extender. The only effect is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readSchedulerConfig(input: SettingsInput): SettingsOutcome<SchedulerConfig> {
  return readSettings(SCHEDULER_PROGRAM, input, checkTogether);
}

function checkTogether(config: SchedulerConfig, faults: Faults): void {
  const { tlsCertFile, tlsPrivateKeyFile, clientCaFile, tlsSecret, printKubeSchedulerConfig } = config;
  if (tlsSecret === '' && printKubeSchedulerConfig) {
    faults.add('--tls-secret', 'a Secret, as --print-kube-scheduler-config is given', undefined);
  }
  if (config.listenAddress === '') faults.add('--listen-address', 'an address', '');
  if (tlsCertFile !== '' && tlsPrivateKeyFile === '') {
    faults.add('--tls-private-key-file', 'a file, as --tls-cert-file is given', undefined);
  }
  if (tlsCertFile === '' && tlsPrivateKeyFile !== '') {
    faults.add('--tls-cert-file', 'a file, as --tls-private-key-file is given', undefined);
  }
  // With a Secret no file is read: the command that prints the configuration has the settings of the container, not its arguments.
  if (clientCaFile !== '' && tlsCertFile === '' && tlsSecret === '') {
    faults.add('--tls-cert-file', 'a file, as --client-ca-file is given', undefined);
  }
  checkAnonymous(config, faults);
}

/** Without a client certificate Pods are bound over loopback alone. */
function checkAnonymous(config: SchedulerConfig, faults: Faults): void {
  const { listenAddress, clientCaFile, clientAllowedNames, allowAnonymousLoopback, tlsSecret } = config;
  if (!allowAnonymousLoopback || clientCaFile !== '' || tlsSecret !== '' || clientAllowedNames.length > 0) return;
  if (listenAddress === '' || isLoopbackAddress(listenAddress)) return;
  const expected = 'a loopback address such as 127.0.0.1:61690, as --allow-anonymous-loopback is given';
  faults.add('--listen-address', expected, listenAddress);
}
