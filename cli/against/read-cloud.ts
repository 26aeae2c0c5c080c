import type { CommandContext } from '../command.ts';
import { ledgerOfCloud } from './find-ledger.ts';
import type { Ledger } from './ledger.ts';
import { type CloudPlace, openCloudReader } from './open-cloud.ts';

/** Timeout of the call, retries and waits included; short because a user waits. */
const CALL_MS = 20_000;

/** Reads ENIs from the cloud's API; changes nothing there. @throws CliError NO_CLOUD, USAGE */
export async function readCloud(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  place: CloudPlace,
  eniIds: readonly string[],
): Promise<Ledger> {
  const reader = await openCloudReader(context, place);
  return ledgerOfCloud(
    await reader.read((cloud, call) => cloud.enis.describe(eniIds, { ...call, timeoutMs: CALL_MS })),
  );
}
