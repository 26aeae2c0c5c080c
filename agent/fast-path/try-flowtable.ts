import { flowtableReplaceCommands, flowtableText } from '../../dataplane/fast-path/flowtable.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { FLOWTABLE_TABLE, TABLE_ENI_BASE } from '../../dataplane/numbers.ts';
import { messageOf } from '../../runtime/error-text.ts';

/** A new namespace has this interface only. */
const DEVICE = 'lo';

/**
 * Tries a flowtable with a device and a rule that learns, in a namespace of its own. Returns why it cannot be had; undefined when
 * the kernel takes it.
 */
export async function tryFlowtable({ nft }: Pick<Kernel, 'nft'>): Promise<string | undefined> {
  try {
    await nft.canonical(flowtableReplaceCommands(flowtableText([TABLE_ENI_BASE + 1]), [DEVICE]), FLOWTABLE_TABLE);
    return undefined;
  } catch (error) {
    if (!isNftError(error, 'NFT_REFUSED')) return messageOf(error);
    const reason = /Error: (.*)/.exec(error.stderr)?.[1] ?? error.stderr.trim();
    return `the kernel takes no flowtable of nftables (${reason}): load nf_flow_table_inet and nft_flow_offload, or update it`;
  }
}
