import { checkCertificateSettings } from '../kube/certificates/certificate-options.ts';
import type { Faults } from '../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../runtime/settings/read-settings.ts';
import { WEBHOOK_PROGRAM, type WebhookConfig } from './options.ts';

/**
 * Reads the settings of the webhook. The only effect is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readWebhookConfig(input: SettingsInput): SettingsOutcome<WebhookConfig> {
  return readSettings(WEBHOOK_PROGRAM, input, checkTogether);
}

function checkTogether(config: WebhookConfig, faults: Faults): void {
  const { clientCaFile, clientAllowedNames, tlsSecret } = config;
  if (tlsSecret !== '' && clientCaFile !== '') {
    faults.add(
      '--client-ca-file',
      'nothing, as --tls-secret is given: clients are checked with certificates in files',
      clientCaFile,
    );
  }
  checkCertificateSettings(config, faults);
  if (clientAllowedNames.length > 0 && clientCaFile === '') {
    faults.add('--client-ca-file', 'a file, as --client-allowed-names is given', undefined);
  }
}
