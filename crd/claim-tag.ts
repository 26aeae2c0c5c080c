import { createHash } from 'node:crypto';

/** Returns the value of the tag that names a claim, `namespace/name`; a value that is too long ends in a digest. */
export function claimTag(claimKey: string): string {
  if (claimKey.length <= MAX_TAG_LENGTH) return claimKey;
  const digest = createHash('sha256').update(claimKey).digest('hex').slice(0, DIGEST_CHARACTERS);
  return `${claimKey.slice(0, MAX_TAG_LENGTH - DIGEST_CHARACTERS - 1)}_${digest}`;
}

/** Returns the claim in a tag; undefined when it names none, or a digest stands for its end: no claim has `_` in its name. */
export function claimRefIn(tag = ''): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace, name] = /^([^/_]+)\/([^/_]+)$/.exec(tag) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/**
 * Longest value of a tag, characters.
 * @see https://cloud.tencent.com/document/product/651/13354 (limits of tags)
 */
const MAX_TAG_LENGTH = 127;
const DIGEST_CHARACTERS = 16;
