import type { CommandContext } from '../../../command/command.ts';
import { type CloudLocation, openCloudReader } from '../../../command/open-cloud-reader.ts';
import { remoteStateOfCloud } from './build-remote-state.ts';
import type { RemoteState } from './remote-state.ts';

/** Timeout of the call, retries and waits included; short because a user waits. */
const CALL_MS = 20_000;

/** Reads ENIs from the cloud's API; changes nothing there. @throws UserError NO_CLOUD, USAGE */
export async function readCloud(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  location: CloudLocation,
  eniIds: readonly string[],
): Promise<RemoteState> {
  const reader = await openCloudReader(context, location);
  return remoteStateOfCloud(
    await reader.read((cloud, call) => cloud.enis.describe(eniIds, { ...call, timeoutMs: CALL_MS })),
  );
}
