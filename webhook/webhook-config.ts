import { readSettings, type SettingsInput, type SettingsOutcome } from '../runtime/settings/read-settings.ts';
import { WEBHOOK_PROGRAM, type WebhookConfig } from './options.ts';

/**
 * Reads the settings of the webhook. The only effect is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readWebhookConfig(input: SettingsInput): SettingsOutcome<WebhookConfig> {
  return readSettings(WEBHOOK_PROGRAM, input);
}
