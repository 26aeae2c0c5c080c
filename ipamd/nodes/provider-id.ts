const INSTANCE = /^ins-[a-z0-9]{4,32}$/;
const PROVIDER_ID = /^(?:qcloud|tencentcloud):\/\/\/?[^/]*\/(ins-[a-z0-9]{4,32})$/;

/**
 * Reads the instance id from a providerID (`qcloud:///<zone>/ins-x`, `tencentcloud:///<zone>/ins-x`) or a bare id.
 * Undefined for anything else: the node is not an instance of this cloud.
 */
export function instanceIdOf(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  return INSTANCE.test(text) ? text : PROVIDER_ID.exec(text)?.[1];
}
