import { isRecord } from '../../../runtime/decode.ts';

/** The field of ip-masq-agent's configuration with the sources that are not masqueraded; a field of the product. */
const FIELD = 'NonMasqueradeSrcCIDRs';

/** What is to be written of ip-masq-agent's configuration. */
type MasqStep =
  | { readonly kind: 'same' }
  /** `ours`: the entries that ipamd added, for the record. */
  | { readonly kind: 'write'; readonly text: string; readonly ours: readonly string[] }
  | { readonly kind: 'unreadable'; readonly message: string };

/**
 * Decides the entries for Pods with an EIP in ip-masq-agent's configuration. Entries that ipamd added and that are not
 * needed any more are removed; missing ones are added at the end. Entries of people stay unchanged in their place, also
 * those with the same content.
 */
export function decideMasqConfig(text: string, ours: readonly string[], desired: readonly string[]): MasqStep {
  const config = parse(text);
  if (config === undefined) return { kind: 'unreadable', message: 'it is not a JSON object' };
  const listed: unknown = config[FIELD] ?? [];
  if (!Array.isArray(listed) || !listed.every((one) => typeof one === 'string')) {
    return { kind: 'unreadable', message: `${FIELD} is not a list of texts` };
  }
  const stale = new Set(ours.filter((one) => !desired.includes(one)));
  const remaining = listed.filter((one) => !stale.has(one));
  const missing = desired.filter((one) => !remaining.includes(one));
  const next = [...remaining, ...missing];
  const record = desired.filter((one) => missing.includes(one) || ours.includes(one));
  const isSame = next.length === listed.length && missing.length === 0 && record.join() === ours.join();
  if (isSame) return { kind: 'same' };
  const indent = text.includes('\n') ? 2 : undefined;
  return { kind: 'write', text: JSON.stringify({ ...config, [FIELD]: next }, undefined, indent), ours: record };
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
