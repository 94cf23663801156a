from ledger.entry import main

main()
