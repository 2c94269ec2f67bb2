export function Policy() { return null; }
