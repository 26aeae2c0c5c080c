import { isRecord } from '../../runtime/decode.ts';

/** The field of ip-masq-agent's configuration that lists sources which are not masqueraded; the product's own. */
const FIELD = 'NonMasqueradeSrcCIDRs';

/** What of ip-masq-agent's configuration is to be written. */
export type MasqStep =
  | { readonly kind: 'same' }
  /** `ours`: the entries that are ipamd's, for the record. */
  | { readonly kind: 'write'; readonly text: string; readonly ours: readonly string[] }
  | { readonly kind: 'unreadable'; readonly message: string };

/**
 * Decides the entries of Pods with an EIP in ip-masq-agent's configuration: those that ipamd put there and that nobody
 * needs any more go, those that are missing come, at the end. What people wrote stays as and where it is, also where it
 * says the same. Pure.
 */
export function decideMasqConfig(text: string, ours: readonly string[], wanted: readonly string[]): MasqStep {
  const config = parse(text);
  if (config === undefined) return { kind: 'unreadable', message: 'it is not a JSON object' };
  const listed: unknown = config[FIELD] ?? [];
  if (!Array.isArray(listed) || !listed.every((one) => typeof one === 'string')) {
    return { kind: 'unreadable', message: `${FIELD} is not a list of texts` };
  }
  const stale = new Set(ours.filter((one) => !wanted.includes(one)));
  const kept = listed.filter((one) => !stale.has(one));
  const missing = wanted.filter((one) => !kept.includes(one));
  const next = [...kept, ...missing];
  const record = wanted.filter((one) => missing.includes(one) || ours.includes(one));
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
