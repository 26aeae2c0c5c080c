import { type CloudError, isCloudError } from '../cloud/cloud-error.ts';

/**
 * Makes one call for all of `items`. One that the cloud refuses because of some of them is made again for each half, so
 * that the others are served: one of a hundred costs some fourteen calls.
 * @param call makes the call for some of them, for all or for none
 * @param onFailed gets what failed; several together when the error is not about one of them
 * @throws whatever `call` throws and is no CloudError
 */
export async function inHalves<T>(
  items: readonly T[],
  call: (some: readonly T[]) => Promise<void>,
  onFailed: (some: readonly T[], error: CloudError) => void,
): Promise<void> {
  if (items.length === 0) return;
  try {
    await call(items);
  } catch (error) {
    if (!isCloudError(error)) throw error;
    if (items.length === 1 || !isAboutSome(error)) {
      onFailed(items, error);
      return;
    }
    const half = Math.ceil(items.length / 2);
    await inHalves(items.slice(0, half), call, onFailed);
    await inHalves(items.slice(half), call, onFailed);
  }
}

/** The call had no effect, and fewer items may have one: a part of the quota may be free. */
function isAboutSome({ retry, code }: CloudError): boolean {
  if (/^(AuthFailure|UnauthorizedOperation)/.test(code)) return false;
  return retry === 'never' || retry === 'gone' || retry === 'quota' || code === 'InvalidParameterValue.Duplicate';
}
