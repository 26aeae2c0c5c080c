/** The kind of a failure of nft(8): not installed, commands refused, or anything else. */
type NftErrorCode = 'NFT_MISSING' | 'NFT_REFUSED' | 'NFT_FAILED';

/** Reports that nftables could not be read or changed. */
export class NftError extends Error {
  readonly code: NftErrorCode;
  /** The error output of nft(8). */
  readonly stderr: string;

  constructor(code: NftErrorCode, action: string, stderr: string, cause?: unknown) {
    super(`${action}: ${nextStep(code, stderr)}`, cause === undefined ? undefined : { cause });
    this.name = 'NftError';
    this.code = code;
    this.stderr = stderr;
  }
}

/** Reports whether `error` is an NftError, of one of `codes` if any are given. */
export function isNftError(error: unknown, ...codes: readonly NftErrorCode[]): error is NftError {
  return error instanceof NftError && (codes.length === 0 || codes.includes(error.code));
}

function nextStep(code: NftErrorCode, stderr: string): string {
  const output = stderr.trim();
  if (code === 'NFT_MISSING') return 'nft is not installed; install the package nftables, or use --rule-mode=per-pod';
  if (code === 'NFT_REFUSED') return `nft refuses: ${output}`;
  return output === '' ? 'nft failed without output' : output;
}
