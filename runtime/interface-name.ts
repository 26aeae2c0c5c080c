/** Longest name of a network interface in bytes, without its final zero. @see uapi/linux/if.h IFNAMSIZ */
const MAX_INTERFACE_NAME_BYTES = 15;

/** Text after "expected …" when a value is not an interface name. */
export const INTERFACE_NAME_RULE = `an interface name: 1 to ${MAX_INTERFACE_NAME_BYTES} bytes, no "/", ":", "%" or white space, not "." or ".."`;

/**
 * Tells whether the kernel would give an interface exactly this name. A "%d" in a name is not allowed: the kernel would
 * replace it by a number of its choice.
 * @see linux/net/core/dev.c dev_valid_name(), __dev_alloc_name()
 */
export function isInterfaceName(name: string): boolean {
  const bytes = Buffer.byteLength(name);
  return bytes > 0 && bytes <= MAX_INTERFACE_NAME_BYTES && !/[/:%\s]/.test(name) && name !== '.' && name !== '..';
}
