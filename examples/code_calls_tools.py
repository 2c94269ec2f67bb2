"""A script that a model could write: it calls tools as functions, and only what it prints comes back."""

from handrail import handle_function_call
from handrail.model_tools import reset

SCRIPT = """
from handrail_tools import ToolError, read_file, terminal, write_file

for city, visits in {"Oslo": 3, "Lima": 5}.items():
    write_file(f"visits/{city}.txt", str(visits))

names = terminal("ls visits")["output"].split()
total = sum(int(open(f"visits/{name}").read()) for name in names)
print(f"{total} visits in {len(names)} cities")

try:
    read_file("visits/Rome.txt")
except ToolError as error:
    print("no file for Rome:", error.error_type)
"""

print(handle_function_call("execute_code", {"code": SCRIPT}))
reset()
